// Orthogonal: whether the modes of a layout nest within one another.
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// True if each mode of coalesce(layout) counts whole blocks of the modes with smaller strides.
/// That is, in the order of strides, each stride is divisible by the next smaller one times its
/// size. The sign of a stride does not matter. A single mode is always orthogonal; a mode of stride
/// 0 with other modes never is, as in PyTorch 2.15.
/// @post if true, and the layout is not one mode of stride 0: is_injective(layout), and
/// complement(layout, n) fills 0..n-1.
bool is_orthogonal(const Layout& layout);

}  // namespace meshard
