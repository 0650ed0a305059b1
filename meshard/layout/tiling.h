// Divides layouts into tiles, and repeats them: logical, zipped and tiled forms (row-major).
#pragma once
#include "meshard/layout/composition.h"
#include "meshard/layout/layout.h"

namespace meshard {

/// Divides `a` into the tiles that `b` describes. For a layout b (an integer n means n:1): `a`
/// after (b, complement(b, a.size())); mode 0 steps within a tile, mode 1 from tile to tile. For a
/// tuple: each of a's first modes is divided by its element, nested ((tile, rest), (tile, rest),
/// ...); the other modes are unchanged. For none: `a`.
/// @post for a layout b with C = complement(b, a.size()): the value at (i, j) is a(b(i) + C(j));
/// where b(i) + C(j) is at or above a.size(), it is the value of coalesce(a).
/// @error errors of complement and composition; a tuple with more elements than a has modes.
Result<Layout> logical_divide(const Layout& a, const Tiler& b);

/// logical_divide with the tiles collected in mode 0 and the rest in mode 1. ((tile, rest), (tile,
/// rest), ...) becomes ((tile, tile, ...), (rest, rest, ..., other modes)): mode 0 steps within a
/// tile, mode 1 from tile to tile. For none: (1:0, a).
/// @post the values of logical_divide, in another order.
/// @error as logical_divide.
Result<Layout> zipped_divide(const Layout& a, const Tiler& b);

/// zipped_divide with its result (first, (second, third, ...)) as (first, second, third, ...).
/// @post the same function as zipped_divide.
/// @error as logical_divide.
Result<Layout> tiled_divide(const Layout& a, const Tiler& b);

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

/// logical_product with the modes of `a` collected in mode 0 and the copies in mode 1. ((mode,
/// copies), (mode, copies), ...) becomes ((mode, mode, ...), (copies, copies, ..., other modes)):
/// mode 0 steps within one copy, mode 1 from copy to copy. For none: (1:0, a).
/// @post the values of logical_product, in another order.
/// @error as logical_product.
Result<Layout> zipped_product(const Layout& a, const Tiler& b);

/// zipped_product with its result (first, (second, third, ...)) as (first, second, third, ...).
/// @post the same function as zipped_product.
/// @error as logical_product.
Result<Layout> tiled_product(const Layout& a, const Tiler& b);

}  // namespace meshard
