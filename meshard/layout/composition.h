// Composition: one layout after another (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// `a` after `b`: the function i -> a(b(i)), nested as b is. A mode of b that a's modes cut becomes
/// a tuple of the pieces. Values of b at or above a.size() run on along a's first mode. A mode of
/// size 1 keeps as stride what a's first mode makes of it, which says nothing.
///
/// Exact: counted in the digits of coalesce(a), the steps of all modes of b never carry, or else
/// the answer is an error. (What other libraries check, that sizes and strides divide one another,
/// is neither needed nor enough.)
/// @post composition(a, b)(i) = a(b(i)) for all i in 0..b.size()-1; one mode for each of b's, of
/// the same size.
/// @error the steps of a mode of b carry unevenly over a mode of a (the message says which extents
/// would do), or those of several together; a negative stride in b, unless a has one mode.
Result<Layout> composition(const Layout& a, const Layout& b);

}  // namespace meshard
