// Names with a star.
#pragma once
#include <string_view>

namespace meshard {

/// True if `name` is `pattern`, in which each `*` stands for any text, also none: `*['w']` matches
/// `p['w']`. Takes time in proportion to both lengths multiplied at most.
bool matches_name(std::string_view pattern, std::string_view name);

}  // namespace meshard
