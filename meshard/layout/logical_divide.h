// Logical divide: the modes of a layout as tiles and what steps from tile to tile (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// For a layout `b` (an integer n is n:1): `a` after (b, complement(b, a.size())). Mode 0 walks in
/// the tile, mode 1 from tile to tile. For a tuple: each of a's first modes divided by its element,
/// nested ((tile, rest), (tile, rest), ...), the other modes as they are. For none: `a`.
/// @post for a layout b with C = complement(b, a.size()): the value at (i, j) is a(b(i) + C(j)),
/// beyond a.size() coalesce(a)'s.
/// @error what complement and composition say; a tuple with more elements than a has modes.
Result<Layout> logical_divide(const Layout& a, const Tiler& b);

}  // namespace meshard
