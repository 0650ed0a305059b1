// Disjoint: whether two layouts have no value in common.
#pragma once
#include <cstdint>

#include "meshard/layout/layout.h"

namespace meshard {

/// True if no value of `a` equals a value of `b` plus `offset`. Exact for strides of any sign and
/// order, without enumerating the values.
bool are_disjoint(const Layout& a, const Layout& b, std::int64_t offset = 0);

}  // namespace meshard
