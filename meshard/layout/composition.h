// Composition: one layout applied after another (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// The composition of `a` after `b`: the function i -> a(b(i)), nested like b. A mode of b that
/// spans several modes of a becomes a tuple of pieces. Values of b at or above a.size() continue
/// along the first mode of coalesce(a). A mode of size 1 also takes its stride from there; that
/// stride has no effect.
///
/// Compositions that are not layouts are rejected. A mode s:d of b takes its pieces from the modes
/// of coalesce(a), fastest first. At each mode except the first (which takes all that remains), two
/// rules must hold: one of d and the mode's size divides the other, and the piece's size divides
/// what remains of s. Published libraries check the first rule only, and reduce (3,4):(100,1) after
/// 6:1 to 4:1. In addition, the pieces of several modes of b must not together exceed a mode of a.
/// @post composition(a, b)(i) = coalesce(a)(b(i)) for all i in 0..b.size()-1, which is a(b(i))
/// where b(i) < a.size(); one mode for each mode of b, of the same size.
/// @error a rule does not hold (the message names the mode and the sizes or strides that would
/// work); a negative stride in b, unless coalesce(a) has one mode; values that do not fit 64 bits.
Result<Layout> composition(const Layout& a, const Layout& b);

/// Composes `a` with a tiler. For none: `a` itself; for an integer n: `a` after n:1; for a layout:
/// `a` after it; for a tuple: each of a's first modes after its tiler, the other modes unchanged.
/// @error one of these compositions fails; a tuple with more elements than a has modes.
Result<Layout> composition(const Layout& a, const Tiler& b);

}  // namespace meshard
