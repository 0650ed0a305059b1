// Finding one's way in MLIR text: brackets, strings, lists.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshard::internal {

/// The end of the string that begins with the quote at `at`, behind its closing quote.
/// @error data loss: it is not closed
std::size_t string_end(std::string_view text, std::size_t at);

/// Behind the bracket that closes the one at `at`: (), [], {} or <>. Brackets in strings do not
/// count, and neither does the > of an arrow.
/// @error data loss: none closes it, or brackets cross
std::size_t matching_end(std::string_view text, std::size_t at);

/// The elements of a list between `from` and `to`: parted by commas outside of brackets and
/// strings, without the blanks around them. None for an empty list.
std::vector<std::pair<std::size_t, std::size_t>> split_list(std::string_view text, std::size_t from,
                                                            std::size_t to);

/// The next character that is no blank.
std::size_t skip_blanks(std::string_view text, std::size_t at);

/// Behind the type that begins at `at`: at the next blank or brace outside of brackets, or `to`.
std::size_t type_end(std::string_view text, std::size_t at, std::size_t to);

/// Where `word` stands outside of strings and comments, from `from` on; npos.
std::size_t find_outside_strings(std::string_view text, std::string_view word, std::size_t from);

/// The text of the string at `at`, with `\"`, `\\` and `\0A` replaced by what they stand for.
std::string unescaped(std::string_view text, std::size_t at);

}  // namespace meshard::internal
