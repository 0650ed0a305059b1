// Coalesce: the shortest layout of the same function (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The same function with as few modes as can be: modes of size 1 go, and an outer mode (s, d)
/// merges with the next inner one (t, e) if d = t e. One mode left: an integer layout `s:d`; none:
/// `1:0`.
/// @post coalesce(L)(i) = L(i) for all i in 0..size-1; depth at most 1; no two neighbours can
/// merge.
Layout coalesce(const Layout& layout);

}  // namespace meshard
