// Disjoint: no value in common.
#pragma once
#include <cstdint>

#include "meshard/layout/layout.h"

namespace meshard {

/// True if no value of `a` is `offset` more than a value of `b`. Exact, for strides of any sign and
/// order, and without listing values.
bool are_disjoint(const Layout& a, const Layout& b, std::int64_t offset = 0);

}  // namespace meshard
