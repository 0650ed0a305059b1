// Logical product: copies of a layout, placed by another (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// For a layout `b`: (a, complement(a, a.size() * b.cosize()) after b). Mode 0 walks in one copy of
/// `a`, mode 1 from copy to copy. For a tuple: each of a's first modes multiplied by its element,
/// nested ((mode, copies), (mode, copies), ...), the other modes as they are. For none: `a`.
/// @post for a layout b with C = complement(a, a.size() * b.cosize()): the value at (i, j) is
/// a(i) + C(b(j)). If `a` is orthogonal and both are injective, no value comes twice; between the
/// values of another `a` there may be room for fewer copies than b asks for, and C runs on.
/// @error an integer, which has no meaning here (PyTorch 2.15 divides by it); what complement and
/// composition say; a tuple with more elements than a has modes.
Result<Layout> logical_product(const Layout& a, const Tiler& b);

}  // namespace meshard
