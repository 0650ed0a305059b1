// Orthogonal: modes that nest within one another.
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// True if, of the modes of coalesce(layout) in the order of their strides, each stride is
/// divisible by the next smaller one times its size: each mode counts whole blocks of the smaller
/// ones. The sign of a stride does not matter. A single mode is always orthogonal, and one of
/// stride 0 never together with others, as in PyTorch 2.15.
/// @post if true, and the layout is not one mode of stride 0: is_injective(layout), and
/// complement(layout, n) fills 0..n-1.
bool is_orthogonal(const Layout& layout);

}  // namespace meshard
