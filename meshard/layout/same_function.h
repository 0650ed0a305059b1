// Same function: whether two layouts differ only in their representation.
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// True if a and b have equal sizes and equal values at every index. Does not enumerate the values:
/// each function has exactly one coalesced layout.
bool same_function(const Layout& a, const Layout& b);

}  // namespace meshard
