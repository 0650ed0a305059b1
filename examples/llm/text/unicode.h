#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llm {

/// Byte offsets [first, second) within a UTF-8 text.
using ByteRange = std::pair<std::size_t, std::size_t>;

/// The bytes of the UTF-8 sequence that begins with `lead`: 1 to 4; 1 for a byte that begins none.
[[nodiscard]] std::size_t utf8_length(char lead);

/// The code points of a text.
/// @error std::invalid_argument with the offset of the first byte that is not UTF-8
[[nodiscard]] std::u32string code_points(std::string_view text);

void append_utf8(std::string& text, char32_t code_point);

[[nodiscard]] bool valid_utf8(std::string_view bytes);

/// The text with U+FFFD for each maximal part of an invalid sequence (Unicode 15, chapter 3.9,
/// table 3-8), as in Rust's from_utf8_lossy and Python's errors="replace".
[[nodiscard]] std::string replace_invalid_utf8(std::string_view bytes);

/// The Unicode properties that tokenizers read. Words are \w of Unicode's regular expressions.
[[nodiscard]] bool is_space(char32_t code_point);

/// The text without the characters at its ends for which `goes` is true.
[[nodiscard]] std::string stripped(std::string_view text, bool left, bool right,
                                   const std::function<bool(char32_t)>& goes = is_space);
[[nodiscard]] bool is_word(char32_t code_point);
[[nodiscard]] bool is_numeric(char32_t code_point);      ///< Nd, Nl, No
[[nodiscard]] bool is_punctuation(char32_t code_point);  ///< ASCII's and P*
/// Unconditional lower case of one code point.
[[nodiscard]] std::u32string lowercase(char32_t code_point);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
[[nodiscard]] std::string normalize(NormalForm form, std::string_view text);

/// The extended grapheme clusters of a text, in order.
[[nodiscard]] std::vector<ByteRange> graphemes(std::string_view text);

/// A compiled regular expression of ICU. Value; threads may share one.
class Regex {
 public:
  /// @error std::invalid_argument with the pattern if it is invalid
  explicit Regex(const std::string& pattern);

  /// The matches from left to right, which do not overlap and are not empty.
  /// @error std::runtime_error if matching needs more stack or time than ICU allows
  [[nodiscard]] std::vector<ByteRange> matches(std::string_view text) const;

 private:
  std::string text_;
  std::shared_ptr<const void> pattern_;
};

/// A regular expression that matches only this text.
[[nodiscard]] std::string quoted_pattern(std::string_view text);

}  // namespace llm
