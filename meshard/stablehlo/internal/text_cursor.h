// A cursor over MLIR's text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshard::stablehlo {

/// Moves over tokens: words (`func.func`, `%arg0`, `@main`, `#loc3`, `-1.5e3`), strings, and single
/// characters. Blanks and `//` comments are skipped. Refers to the text.
/// @error everything that does not find what it wants throws data loss with the line
class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  std::size_t position() {
    skip_blanks();
    return at_;
  }
  std::string_view text() const { return text_; }
  void jump(std::size_t position) { at_ = position; }
  bool peek(std::string_view token);
  /// True, and moves on, if `token` comes next.
  bool accept(std::string_view token);
  /// As accept, of a whole word: `func` is not in `func.func`.
  bool accept_word(std::string_view word);
  void expect(std::string_view token);
  /// A word; empty if the next is none.
  std::string_view word();
  bool peek_quoted() { return peek("\""); }
  /// A string between double quotes, its escapes resolved.
  std::string quoted();
  std::int64_t integer();
  /// From an opening bracket to the one that closes it, both included.
  std::string_view balanced();
  /// Up to a `,`, a closing bracket or, if asked for, a space followed by `{`, or `loc(`, outside
  /// of brackets; blanks at the end are cut off.
  std::string_view value(bool ends_at_attributes = false);
  /// One token of whatever kind: a word, a string with its quotes, an arrow, a character.
  std::string_view token();
  [[noreturn]] void fail(std::string_view what) const;

 private:
  void skip_blanks();
  std::size_t end_of_string(std::size_t begin) const;

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace meshard::stablehlo
