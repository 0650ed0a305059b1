#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llm::jinja {

/// A part of a template: text, or the inside of {{ }} or {% %}.
struct Part {
  enum class Kind { kText, kExpression, kStatement };
  Kind kind = Kind::kText;
  std::string text;
  int line = 1;
};

/// Splits a template, with white space as chat templates have it (trim_blocks and lstrip_blocks).
/// @error std::invalid_argument with the line of a tag that does not end
[[nodiscard]] std::vector<Part> split_template(std::string_view source);

struct Token {
  enum class Kind { kName, kText, kInteger, kFloat, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;
};

/// The tokens of an expression or a statement, ended by kEnd.
/// @error std::invalid_argument for characters that begin no token
[[nodiscard]] std::vector<Token> tokens_of(std::string_view source);

}  // namespace llm::jinja
