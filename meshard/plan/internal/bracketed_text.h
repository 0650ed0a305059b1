// Helpers for parsing MLIR text: brackets, strings, lists.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshard::internal {

/// The position after the closing quote of the string whose opening quote is at `at`.
/// @error data loss: the string is not closed
std::size_t string_end(std::string_view text, std::size_t at);

/// The position after the bracket that matches the one at `at`: (), [], {} or <>. Ignores brackets
/// in strings, and the > of an arrow.
/// @error data loss: there is no matching bracket, or brackets are mismatched
std::size_t matching_end(std::string_view text, std::size_t at);

/// The elements of a list between `from` and `to`, as ranges. Elements are separated by commas
/// outside brackets and strings, and trimmed. Empty for an empty list.
std::vector<std::pair<std::size_t, std::size_t>> split_list(std::string_view text, std::size_t from,
                                                            std::size_t to);

/// The position of the next non-blank character.
std::size_t skip_blanks(std::string_view text, std::size_t at);

/// The end of the type at `at`: the next blank or brace outside brackets, or `to`.
std::size_t type_end(std::string_view text, std::size_t at, std::size_t to);

/// The first occurrence of `word` outside strings and comments, from `from` on; npos if none.
std::size_t find_outside_strings(std::string_view text, std::string_view word, std::size_t from);

/// The contents of the string at `at`, with the escapes `\"`, `\\` and `\0A` decoded.
std::string unescaped(std::string_view text, std::size_t at);

}  // namespace meshard::internal
