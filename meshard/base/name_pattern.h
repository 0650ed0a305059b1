// Matching of names against patterns with `*`.
#pragma once
#include <string_view>

namespace meshard {

/// True if `name` matches `pattern`, where each `*` matches any text, including none. `*['w']`
/// matches `p['w']`. The time is at most proportional to the product of both lengths.
bool matches_name(std::string_view pattern, std::string_view name);

}  // namespace meshard
