// The tokenizer that layouts, meshes, partition specs and shardings use to parse their text form.
#pragma once
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/base/error.h"
#include "meshard/base/result.h"

namespace meshard {

/// A cursor over text that skips white space between tokens. Every failure throws an Error that
/// shows the text and the position; `parse_whole` turns it into a Result.
class TextScanner {
 public:
  /// @param place the kind of text, for error messages: `mesh`.
  TextScanner(std::string_view place, std::string_view text) : place_(place), text_(text) {}

  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  /// If `token` comes next, moves past it and returns true.
  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool peek(std::string_view token) {
    skip_blanks();
    return text_.substr(at_).starts_with(token);
  }
  /// The unread text, starting at the next token.
  std::string_view rest() {
    skip_blanks();
    return text_.substr(at_);
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(cat("expected `", token, "`"));
  }
  /// A decimal integer that fits 64 bits.
  std::int64_t integer() {
    skip_blanks();
    std::int64_t number = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc()) fail("expected a whole number");
    at_ = static_cast<std::size_t>(end - text_.data());
    return number;
  }
  bool peek_integer() {
    skip_blanks();
    return at_ < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-');
  }
  /// A name of letters, digits and underscores that does not begin with a digit.
  std::string identifier() {
    skip_blanks();
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_'))
      ++end;
    if (end == at_ || std::isdigit(static_cast<unsigned char>(text_[at_]))) fail("expected a name");
    std::string name(text_.substr(at_, end - at_));
    at_ = end;
    return name;
  }
  /// Text between double quotes, without escapes.
  std::string quoted() {
    expect("\"");
    std::size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) fail("unterminated quoted name");
    std::string inside(text_.substr(at_, end - at_));
    at_ = end + 1;
    return inside;
  }
  /// Reads `item , item , ... close`, possibly empty, after the opening token has been read.
  template <class Item>
  void list(std::string_view close, Item item) {
    if (accept(close)) return;
    do {
      item();
    } while (accept(","));
    expect(close);
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::kInvalidArgument,
                cat("[parse ", place_, "] ", what, " at character ", at_, " of `", text_, "`"));
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  std::string_view place_;
  std::string_view text_;
  std::size_t at_ = 0;
};

/// Applies `read` (TextScanner& -> T) to the whole of `text`.
/// @error errors of the scanner or of T's own checks; unread text at the end.
template <class Read>
auto parse_whole(std::string_view place, std::string_view text, Read read)
    -> Result<decltype(read(std::declval<TextScanner&>()))> {
  return caught([&] {
    TextScanner scanner(place, text);
    auto value = read(scanner);
    if (!scanner.at_end()) scanner.fail("unexpected text");
    return value;
  });
}

}  // namespace meshard
