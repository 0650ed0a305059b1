// Composition: one layout after another (row-major).
#pragma once
#include "meshard/layout/layout.h"
#include "meshard/layout/tiler.h"

namespace meshard {

/// `a` after `b`: the function i -> a(b(i)), nested as b is. A mode of b that falls on several
/// modes of a becomes a tuple of pieces. Values of b at or above a.size() run on along the
/// first mode of coalesce(a). A mode of size 1 takes its stride from there too, which says nothing.
///
/// Never wrong: a mode s:d of b takes its pieces from the modes of coalesce(a), fastest first, and
/// at each but the first (which takes all that remains) two rules must hold: d and the mode's size
/// divide one another, and the piece's size divides what remains of s. Published libraries check
/// the first rule only, and shrink (3,4):(100,1) after 6:1 to 4:1. The pieces of several modes of b
/// must not add up beyond a mode of a either.
/// @post composition(a, b)(i) = coalesce(a)(b(i)) for all i in 0..b.size()-1, which is a(b(i))
/// where b(i) < a.size(); one mode for each of b's, of the same size.
/// @error a rule does not hold (the message names the mode and says what would do); a negative
/// stride in b, unless coalesce(a) has one mode; values that do not fit 64 bits.
Result<Layout> composition(const Layout& a, const Layout& b);

/// Mode by mode: `a` itself for none, a after n:1 for an integer, a after a layout, and for a tuple
/// each of a's first modes after its tiler, the other modes as they are.
/// @error one of these compositions fails; a tuple with more elements than a has modes.
Result<Layout> composition(const Layout& a, const Tiler& b);

}  // namespace meshard
