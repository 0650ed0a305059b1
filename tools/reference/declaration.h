// The public functions and types of the op headers, as read by declarations.py.
#pragma once
#include <span>
#include <string_view>

namespace meshard::tool {

enum class DeclarationKind { kFunction, kType, kValue };

/// One documented declaration; a value type.
struct Declaration {
  std::string_view name;
  DeclarationKind kind;
  std::string_view header;   ///< `meshard/ops/power.h`
  std::string_view title;    ///< the header's first comment line; may be empty
  std::string_view comment;  ///< with its `///`; overloads share it
  std::string_view prose;    ///< the comment as Markdown, without its errors
  std::string_view errors;   ///< as Markdown; may be empty
  std::string_view text;     ///< a function without its body, a class without its members
};

/// All declarations, header by header.
std::span<const Declaration> all_declarations();

}  // namespace meshard::tool
