// Complement: the layout of the positions that a layout leaves out (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The coalesced layout of the offsets at which copies of `layout` fill 0..cotarget-1. Modes of
/// stride 0 are ignored.
/// @post the values of (complement, layout) are distinct, except for modes of stride 0; the
/// complement's own values increase; if each stride of `layout` is divisible by the reach (stride
/// times size) of the next smaller one, the values cover 0..cotarget-1. The last copies may extend
/// beyond cotarget, because the outermost size is rounded up.
/// @error modes interlock (one's stride is smaller than the reach of a smaller one), which is
/// always so if values repeat; a negative stride; cotarget below 1; a reach that does not fit 64
/// bits.
Result<Layout> complement(const Layout& layout, std::int64_t cotarget);

}  // namespace meshard
