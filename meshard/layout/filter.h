// Filter: a layout without what adds no value (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The coalesced layout of the modes whose size is not 1 and whose stride is not 0.
/// @post takes the same values as `layout`; no stride is 0, unless it is `1:0`.
Layout filter(const Layout& layout);

/// Filters mode by mode: mode k for each element k of the tuple `profile`, by that element. An
/// integer, whatever its value, stands for the whole; modes beyond the profile stay as they are.
/// @error the profile has more elements than there are modes.
Result<Layout> filter(const Layout& layout, const IntTuple& profile);

}  // namespace meshard
