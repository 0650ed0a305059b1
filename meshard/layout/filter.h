// Filter: a layout without the modes that add no values (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The coalesced layout of the modes whose size is not 1 and whose stride is not 0.
/// @post has the same set of values as `layout`; no stride is 0, unless it is `1:0`.
Layout filter(const Layout& layout);

/// Filters mode by mode: mode k according to element k of the tuple `profile`. Where the profile is
/// an integer, whatever its value, the whole is filtered. Modes beyond the profile are unchanged.
/// @error the profile has more elements than the layout has modes.
Result<Layout> filter(const Layout& layout, const IntTuple& profile);

}  // namespace meshard
