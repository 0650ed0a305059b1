// Flatten: removes nesting.
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The tuple of all integers, left to right: `((2,3),4)` gives `(2,3,4)`, `4` gives `(4)`.
IntTuple flatten(const IntTuple& tuple);

/// The same function with one mode for each integer of the shape.
/// @post flatten(L)(i) = L(i) for all i in 0..size-1; the depth is 1.
Layout flatten(const Layout& layout);

}  // namespace meshard
