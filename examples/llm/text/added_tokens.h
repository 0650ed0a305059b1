#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "examples/llm/text/normalizer.h"
#include "examples/llm/text/pre_tokenizer.h"

namespace llm {

/// A token that is found in the text before the model sees it.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  ///< only where no letter or digit is beside it
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool normalized = false;   ///< found in the normalized text
  bool special = false;      ///< left out by decode(ids, skip_special)
  std::string text;          ///< what decode() writes: the content, normalized if `normalized`
};

/// A piece of text, or an added token if `id` is at least 0.
struct Section {
  Piece piece;
  std::int32_t id = -1;
};

/// The added tokens of a tokenizer. At each position the longest one is found.
class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer);

  /// Splits a text at its added tokens, and normalizes what is between them.
  [[nodiscard]] std::vector<Section> split(std::string_view text,
                                           const Normalizer& normalizer) const;

  [[nodiscard]] const AddedToken* find(std::int32_t id) const;
  [[nodiscard]] const AddedToken* find(const std::string& content) const;
  [[nodiscard]] const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  /// Texts by their first byte, the longest first.
  using Patterns = std::map<char, std::vector<std::pair<std::string, std::size_t>>>;
  void add_pattern(Patterns& patterns, const std::string& text, std::size_t token);
  void split_piece(const Piece& piece, const Patterns& patterns, std::vector<Section>& out) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::int32_t, std::size_t> by_id_;
  Patterns raw_, normalized_;
};

}  // namespace llm
