#include "examples/llm/text/jinja_lexer.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "examples/llm/text/unicode.h"

namespace llm::jinja {
namespace {

/// The end of a tag's inside: `closer`, which does not count in quotes and brackets, or npos.
std::size_t find_end(std::string_view source, std::size_t at, std::string_view closer) {
  if (closer == "#}") return source.find(closer, at);
  char quote = 0;
  int depth = 0;
  for (; at < source.size(); ++at) {
    const char c = source[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      if (c == quote) quote = 0;
    } else if (depth == 0 && source.substr(at).starts_with(closer)) {
      return at;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

void strip_end(std::string& text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
}

/// Removes the white space between the beginning of a line and a tag.
void strip_line(std::string& text, bool at_start) {
  std::size_t end = text.size();
  while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
  if (end == 0 ? at_start : text[end - 1] == '\n') text.resize(end);
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

Token quoted(std::string_view source, std::size_t& at) {
  const char quote = source[at++];
  Token token{Token::Kind::kText, {}};
  while (at < source.size() && source[at] != quote) {
    char c = source[at++];
    if (c == '\\' && at < source.size()) {
      c = source[at++];
      if (c == 'u') {  // four hexadecimal digits
        const std::string digits(source.substr(at, 4));
        if (digits.size() < 4 ||
            digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
          throw std::invalid_argument("\\u must be followed by four hexadecimal digits");
        append_utf8(token.text, static_cast<char32_t>(std::stoul(digits, nullptr, 16)));
        at += 4;
        continue;
      }
      const std::string_view escapes = "nrt\\'\"", meanings = "\n\r\t\\'\"";
      const std::size_t known = escapes.find(c);
      if (known == std::string_view::npos)
        throw std::invalid_argument(std::string("the escape \\") + c + " is not supported");
      c = meanings[known];
    }
    token.text += c;
  }
  if (at >= source.size()) throw std::invalid_argument("a text is not closed");
  ++at;
  return token;
}

}  // namespace

std::vector<Part> split_template(std::string_view source) {
  if (source.ends_with('\n')) source.remove_suffix(1);
  std::vector<Part> parts;
  std::size_t at = 0;
  int line = 1;
  bool strip_start = false, trim_newline = false, at_start = true;
  while (at < source.size() || at == 0) {
    std::size_t open = at;
    while (open < source.size() &&
           !(source[open] == '{' && open + 1 < source.size() &&
             std::string_view("{%#").find(source[open + 1]) != std::string_view::npos))
      ++open;
    std::string text(source.substr(at, open - at));
    const int lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    if (strip_start) text.erase(0, text.find_first_not_of(" \t\r\n\f\v"));
    const bool trimmed = trim_newline && text.starts_with('\n');
    if (trimmed) text.erase(0, 1);
    const bool begins = at_start || trimmed;
    const char kind = open < source.size() ? source[open + 1] : 0;
    const char sign = open + 2 < source.size() ? source[open + 2] : 0;
    if (kind != 0 && sign == '-') {
      strip_end(text);
    } else if ((kind == '%' || kind == '#') && sign != '+') {
      strip_line(text, begins);
    }
    if (!text.empty()) parts.push_back({Part::Kind::kText, text, line});
    line += lines;
    if (kind == 0) break;
    const std::string_view closer = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
    const std::size_t end = find_end(source, open + 2, closer);
    if (end == std::string_view::npos)
      throw std::invalid_argument("line " + std::to_string(line) + ": a tag is not closed");
    std::string_view inside = source.substr(open + 2, end - open - 2);
    const bool minus = inside.ends_with('-'), plus = inside.ends_with('+');
    if (inside.starts_with('-') || inside.starts_with('+')) inside.remove_prefix(1);
    if (!inside.empty() && (minus || plus)) inside.remove_suffix(1);
    if (kind != '#')
      parts.push_back({kind == '{' ? Part::Kind::kExpression : Part::Kind::kStatement,
                       std::string(inside), line});
    line += static_cast<int>(std::count(inside.begin(), inside.end(), '\n'));
    strip_start = minus;
    trim_newline = kind != '{' && !plus && !minus;
    at_start = false;
    at = end + 2;
  }
  return parts;
}

std::vector<Token> tokens_of(std::string_view source) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < source.size();) {
    const char c = source[at];
    const std::size_t begin = at;
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++at;
    } else if (c == '"' || c == '\'') {
      tokens.push_back(quoted(source, at));
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      while (at < source.size() && std::isdigit(static_cast<unsigned char>(source[at]))) ++at;
      const bool point = at + 1 < source.size() && source[at] == '.' &&
                         std::isdigit(static_cast<unsigned char>(source[at + 1]));
      if (point) do
          ++at;
        while (at < source.size() && std::isdigit(static_cast<unsigned char>(source[at])));
      tokens.push_back({point ? Token::Kind::kFloat : Token::Kind::kInteger,
                        std::string(source.substr(begin, at - begin))});
    } else if (is_name(c)) {
      while (at < source.size() && is_name(source[at])) ++at;
      tokens.push_back({Token::Kind::kName, std::string(source.substr(begin, at - begin))});
    } else {
      const std::string_view two = source.substr(at, 2);
      const bool both =
          two == "==" || two == "!=" || two == "<=" || two == ">=" || two == "//" || two == "**";
      if (!both && std::string_view("+-*/%~<>=()[]{}.,:|").find(c) == std::string_view::npos)
        throw std::invalid_argument(std::string("unexpected character '") + c + "'");
      at += both ? 2 : 1;
      tokens.push_back({Token::Kind::kSign, std::string(source.substr(begin, at - begin))});
    }
  }
  tokens.emplace_back();
  return tokens;
}

}  // namespace llm::jinja
