// Coalesce: the shortest layout of the same function (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The same function with as few modes as possible. Modes of size 1 are dropped, and an outer mode
/// (s, d) merges with the next inner one (t, e) if d = t e. If one mode remains, the result is an
/// integer layout `s:d`; if none remains, `1:0`.
/// @post coalesce(L)(i) = L(i) for all i in 0..size-1; the depth is at most 1; no two adjacent
/// modes can merge. Layouts of equal size are the same function exactly if they coalesce to the
/// same layout.
Layout coalesce(const Layout& layout);

/// Coalesces mode by mode: mode k according to element k of the tuple `profile`. Where the profile
/// is an integer, whatever its value, the whole is coalesced. Modes beyond the profile are
/// unchanged.
/// @post the same function; the modes that the profile lists keep their sizes.
/// @error the profile has more elements than the layout has modes.
Result<Layout> coalesce(const Layout& layout, const IntTuple& profile);

/// The coalesced layout of the modes whose size is not 1 and whose stride is not 0.
/// @post has the same set of values as `layout`; no stride is 0, unless it is `1:0`.
Layout filter(const Layout& layout);

/// Filters mode by mode: mode k according to element k of the tuple `profile`. Where the profile is
/// an integer, whatever its value, the whole is filtered. Modes beyond the profile are unchanged.
/// @error the profile has more elements than the layout has modes.
Result<Layout> filter(const Layout& layout, const IntTuple& profile);

/// True if a and b have equal sizes and equal values at every index. Does not enumerate the values:
/// each function has exactly one coalesced layout.
bool same_function(const Layout& a, const Layout& b);

}  // namespace meshard
