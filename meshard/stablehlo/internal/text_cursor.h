// A tokenizer for MLIR text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshard::stablehlo {

/// The value of a hexadecimal digit; -1 for any other character.
int hex_digit(char c);

/// Reads MLIR text token by token. Refers to the text. Tokens are words (`func.func`, `%arg0`,
/// `@main`, `#loc3`, `-1.5e3`), strings and single characters. White space and `//` comments are
/// skipped.
/// @error all functions that do not find what they expect throw data loss with the line
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
  /// The position right behind the last token.
  std::size_t raw_position() const { return at_; }
  std::string_view text() const { return text_; }
  void jump(std::size_t position) { at_ = position; }
  bool peek(std::string_view token);
  /// If `token` comes next, moves past it and returns true.
  bool accept(std::string_view token);
  /// Like accept, but only for a whole word: `func` does not match `func.func`.
  bool accept_word(std::string_view word);
  void expect(std::string_view token);
  /// Reads a word; empty if the next token is not a word.
  std::string_view word();
  bool peek_quoted() { return peek("\""); }
  /// Reads a string in double quotes and resolves its escapes.
  std::string quoted();
  std::int64_t integer();
  /// Reads from an opening bracket to the matching closing bracket, inclusive.
  std::string_view balanced();
  /// Reads up to a `,` or closing bracket outside of brackets, without trailing white space.
  /// @param ends_at_attributes also stop, after the first token, at `{`, `loc(` or `->`; default:
  /// false
  std::string_view value(bool ends_at_attributes = false);
  /// Reads one token of any kind: a word, a string with its quotes, an arrow or a character.
  std::string_view token();
  [[noreturn]] void fail(std::string_view what) const;

 private:
  void skip_blanks();
  std::size_t end_of_string(std::size_t begin) const;

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace meshard::stablehlo
