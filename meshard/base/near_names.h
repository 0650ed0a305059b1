// Suggestions for misspelled names.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshard {

/// How many insertions, deletions, substitutions and swaps of neighbors change one text into the
/// other (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The names that are most similar to a word, at most `most`, nearest first. A name that contains
/// the word is as near as one with a single mistake.
std::vector<std::string> near_names(std::string_view word, std::span<const std::string> names,
                                    std::size_t most = 3);

/// The same for an error message: `the nearest names are "w", "b"`; `there are no names` without
/// any.
std::string nearest_text(std::string_view word, std::span<const std::string> names);

// Matching of names against patterns with `*`.

/// True if `name` matches `pattern`, where each `*` matches any text, including none. `*['w']`
/// matches `p['w']`. The time is at most proportional to the product of both lengths.
bool matches_name(std::string_view pattern, std::string_view name);

}  // namespace meshard
