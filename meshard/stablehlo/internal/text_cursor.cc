#include "meshard/stablehlo/internal/text_cursor.h"

#include <algorithm>
#include <charconv>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard::stablehlo {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '$' || c == '%' || c == '#' || c == '@' || c == '!' || c == '^' ||
         c == '-';
}

char closing(char opening) {
  switch (opening) {
    case '(': return ')';
    case '[': return ']';
    case '{': return '}';
    default: return '>';
  }
}

}  // namespace

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void TextCursor::fail(std::string_view what) const {
  std::size_t end = std::min(at_, text_.size());
  auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(end), '\n') + 1;
  std::string_view there = text_.substr(end, 40);
  throw Error(ErrorCode::kDataLoss,
              cat("[read_module] line ", line, ": ", what,
                  there.empty() ? " at the end" : cat(" before `", there, "`")));
}

void TextCursor::skip_blanks() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool TextCursor::peek(std::string_view token) {
  skip_blanks();
  return text_.substr(at_).starts_with(token);
}

bool TextCursor::accept(std::string_view token) {
  if (!peek(token)) return false;
  at_ += token.size();
  return true;
}

bool TextCursor::accept_word(std::string_view wanted) {
  std::size_t before = position();
  if (word() == wanted) return true;
  at_ = before;
  return false;
}

void TextCursor::expect(std::string_view token) {
  if (!accept(token)) fail(cat("expected `", token, "`"));
}

std::string_view TextCursor::word() {
  skip_blanks();
  std::size_t end = at_;
  while (end < text_.size() && is_word(text_[end]) && text_.substr(end, 2) != "->") ++end;
  std::string_view found = text_.substr(at_, end - at_);
  at_ = end;
  return found;
}

std::size_t TextCursor::end_of_string(std::size_t begin) const {
  for (std::size_t i = begin + 1; i < text_.size(); ++i) {
    if (text_[i] == '\\') {
      ++i;
    } else if (text_[i] == '"') {
      return i + 1;
    }
  }
  fail("unterminated string");
}

std::string TextCursor::quoted() {
  if (!peek_quoted()) fail("expected a string");
  std::size_t end = end_of_string(at_);
  std::string_view raw = text_.substr(at_ + 1, end - at_ - 2);
  at_ = end;
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    char c = raw[++i];
    if (c == 'n' || c == 't') {
      out += c == 'n' ? '\n' : '\t';
    } else if (i + 1 < raw.size() && hex_digit(c) >= 0 && hex_digit(raw[i + 1]) >= 0) {
      out += static_cast<char>(hex_digit(c) * 16 + hex_digit(raw[i + 1]));
      ++i;
    } else {
      out += c;
    }
  }
  return out;
}

std::int64_t TextCursor::integer() {
  skip_blanks();
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
  if (error != std::errc()) fail("expected a whole number");
  at_ = static_cast<std::size_t>(end - text_.data());
  return number;
}

std::string_view TextCursor::token() {
  skip_blanks();
  std::size_t begin = at_;
  if (begin == text_.size()) fail("expected a token");
  if (text_[begin] == '"') {
    at_ = end_of_string(begin);
  } else if (text_.substr(begin, 2) == "->" || text_.substr(begin, 2) == "<=") {
    at_ += 2;
  } else if (word().empty()) {
    at_ = begin + 1;
  }
  return text_.substr(begin, at_ - begin);
}

std::string_view TextCursor::balanced() {
  std::size_t begin = position();
  std::vector<char> open;
  do {
    if (at_end())
      fail(cat("unbalanced brackets: the `", text_[begin], "` at byte ", begin, " is not closed"));
    std::string_view found = token();
    if (found.size() != 1) continue;
    char c = found[0];
    if (c == '(' || c == '[' || c == '{' || c == '<') {
      open.push_back(closing(c));
    } else if (c == ')' || c == ']' || c == '}' || c == '>') {
      if (open.empty() || open.back() != c) fail(cat("unmatched `", found, "`"));
      open.pop_back();
    }
  } while (!open.empty());
  return text_.substr(begin, at_ - begin);
}

std::string_view TextCursor::value(bool ends_at_attributes) {
  std::size_t begin = position();
  std::size_t end = begin;
  bool first = true;
  while (!at_end()) {
    char c = text_[at_];
    if (c == ',' || c == ')' || c == ']' || c == '}' || c == '>') break;
    if (ends_at_attributes && !first && (c == '{' || peek("loc(") || peek("->"))) break;
    if (c == '(' || c == '[' || c == '{' || c == '<') {
      balanced();
    } else {
      token();
    }
    end = at_;
    first = false;
  }
  return text_.substr(begin, end - begin);
}

}  // namespace meshard::stablehlo
