// Coalesce: the shortest layout of the same function (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The same function with as few modes as can be: modes of size 1 go, and an outer mode (s, d)
/// merges with the next inner one (t, e) if d = t e. One mode left: an integer layout `s:d`; none:
/// `1:0`.
/// @post coalesce(L)(i) = L(i) for all i in 0..size-1; depth at most 1; no two neighbours can
/// merge. Layouts of one size are the same function exactly if they coalesce to the same.
Layout coalesce(const Layout& layout);

/// Coalesces mode by mode: mode k for each element k of the tuple `profile`, by that element. An
/// integer, whatever its value, stands for the whole; modes beyond the profile stay as they are.
/// @post the same function; the sizes of the modes that the profile names stay.
/// @error the profile has more elements than there are modes.
Result<Layout> coalesce(const Layout& layout, const IntTuple& profile);

}  // namespace meshard
