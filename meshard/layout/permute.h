// Permute: reorders the modes of a layout (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The layout whose mode k is mode order[k] of `layout`.
/// @post the value at coordinate (c[order[0]], c[order[1]], ...) is the layout's at c.
/// @error `order` does not hold each of 0..rank-1 once.
Layout permute(const Layout& layout, IntView order);

}  // namespace meshard
