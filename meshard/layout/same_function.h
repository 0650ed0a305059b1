// Same function: whether two layouts differ in writing only.
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// True if a and b have equal sizes and equal values at every index. Lists no values: a function
/// has one coalesced layout.
bool same_function(const Layout& a, const Layout& b);

}  // namespace meshard
