#include "meshard/plan/internal/bracketed_text.h"

#include <algorithm>
#include <cctype>

#include "meshard/base/error.h"

namespace meshard::internal {
namespace {

constexpr std::string_view kOpening = "([{<", kClosing = ")]}>";

bool is_arrow_head(std::string_view text, std::size_t at) {
  return text[at] == '>' && at > 0 && text[at - 1] == '-';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::size_t string_end(std::string_view text, std::size_t at) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  throw Error(ErrorCode::kDataLoss,
              cat("[module text] the string at byte ", at, " is not terminated"));
}

std::size_t matching_end(std::string_view text, std::size_t at) {
  std::string open;
  for (std::size_t i = at; i < text.size();) {
    char c = text[i];
    if (c == '"') {
      i = string_end(text, i);
      continue;
    }
    std::size_t kind = kClosing.find(c);
    if (kOpening.find(c) != std::string_view::npos && !(c == '<' && text.substr(i, 2) == "<=")) {
      open.push_back(c);
    } else if (kind != std::string_view::npos && !is_arrow_head(text, i)) {
      if (open.back() != kOpening[kind])
        throw Error(ErrorCode::kDataLoss, cat("[module text] `", c, "` at byte ", i,
                                              " does not match `", open.back(), "`"));
      open.pop_back();
      if (open.empty()) return i + 1;
    }
    ++i;
  }
  throw Error(ErrorCode::kDataLoss,
              cat("[module text] `", text[at], "` at byte ", at, " is not closed"));
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
  return at;
}

std::vector<std::pair<std::size_t, std::size_t>> split_list(std::string_view text, std::size_t from,
                                                            std::size_t to) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  std::size_t begin = skip_blanks(text, from);
  if (begin >= to) return out;
  auto add = [&](std::size_t end) {
    while (end > begin && std::isspace(static_cast<unsigned char>(text[end - 1]))) --end;
    out.emplace_back(begin, end);
  };
  for (std::size_t i = begin; i < to;) {
    if (text[i] == '"') {
      i = string_end(text, i);
    } else if (kOpening.find(text[i]) != std::string_view::npos) {
      i = matching_end(text, i);
    } else {
      if (text[i] == ',') {
        add(i);
        begin = skip_blanks(text, i + 1);
      }
      ++i;
    }
  }
  add(to);
  return out;
}

std::size_t type_end(std::string_view text, std::size_t at, std::size_t to) {
  while (at < to && !std::isspace(static_cast<unsigned char>(text[at])) && text[at] != '{')
    at = kOpening.find(text[at]) == std::string_view::npos ? at + 1 : matching_end(text, at);
  return std::min(at, to);
}

std::size_t find_outside_strings(std::string_view text, std::string_view word, std::size_t from) {
  for (std::size_t i = from; i < text.size();) {
    if (text[i] == '"') {
      i = string_end(text, i);
    } else if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, word.size()) == word) {
      return i;
    } else {
      ++i;
    }
  }
  return std::string_view::npos;
}

std::string unescaped(std::string_view text, std::size_t at) {
  std::size_t end = string_end(text, at) - 1;
  std::string out;
  for (std::size_t i = at + 1; i < end; ++i) {
    if (text[i] != '\\') {
      out.push_back(text[i]);
      continue;
    }
    int high = hex_digit(text[i + 1]), low = i + 2 < end ? hex_digit(text[i + 2]) : -1;
    if (high >= 0 && low >= 0) {
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out.push_back(text[++i]);
    }
  }
  return out;
}

}  // namespace meshard::internal
