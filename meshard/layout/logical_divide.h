// Logical divide: splits the modes of a layout into tiles and steps between tiles (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// Divides `a` into the tiles that `b` describes. For a layout b (an integer n means n:1): `a`
/// after (b, complement(b, a.size())); mode 0 steps within a tile, mode 1 from tile to tile. For a
/// tuple: each of a's first modes is divided by its element, nested ((tile, rest), (tile, rest),
/// ...); the other modes are unchanged. For none: `a`.
/// @post for a layout b with C = complement(b, a.size()): the value at (i, j) is a(b(i) + C(j));
/// where b(i) + C(j) is at or above a.size(), it is the value of coalesce(a).
/// @error errors of complement and composition; a tuple with more elements than a has modes.
Result<Layout> logical_divide(const Layout& a, const Tiler& b);

}  // namespace meshard
