// Logical product: copies of a layout, placed by another (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// Repeats `a` at the positions that `b` describes. For a layout b: (a, complement(a, a.size() *
/// b.cosize()) after b); mode 0 steps within one copy of `a`, mode 1 from copy to copy. For a
/// tuple: each of a's first modes is multiplied by its element, nested ((mode, copies), (mode,
/// copies), ...); the other modes are unchanged. For none: `a`.
/// @post for a layout b with C = complement(a, a.size() * b.cosize()): the value at (i, j) is a(i)
/// + C(b(j)). If `a` is orthogonal and both are injective, no value repeats. Between the values of
/// an `a` that is not orthogonal there may be room for fewer copies than b requests; C then
/// continues beyond.
/// @error an integer, which has no meaning here (PyTorch 2.15 divides by it); errors of complement
/// and composition; a tuple with more elements than a has modes.
Result<Layout> logical_product(const Layout& a, const Tiler& b);

}  // namespace meshard
