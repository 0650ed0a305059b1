// Split: the same function with modes of given sizes (row-major).
#pragma once
#include <span>

#include "meshard/layout/layout.h"

namespace meshard {

/// The same function with one top-level mode for each of `sizes`, outermost first. Each mode is a
/// tuple of the pieces of `layout`'s modes that fall into it.
/// @post split(L, s)(i) = L(i) for all i, and the size of its mode k is s[k].
/// @error a size is below 1; the product of `sizes` is not layout.size(); the boundary between two
/// sizes cuts a mode of `layout` unevenly.
Result<Layout> split(const Layout& layout, IntView sizes);

}  // namespace meshard
