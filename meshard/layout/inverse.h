// Complements and inverses of layouts (row-major).
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

/// The coalesced layout R that maps the values of `layout` to their indices. R takes the modes,
/// smallest stride first, as long as they nest. It ends before a mode that interlocks with the
/// smaller ones (its stride is smaller than their reach, which is always so if values repeat), and
/// at a mode whose stride is not divisible by their reach. If the layout is orthogonal, R covers
/// all its values, and maps the numbers between them to distinct indices from layout.size() on.
/// `1:0` if a mode has stride 0.
/// @post R(layout(i)) = i for all i with layout(i) below R.size() and below the strides of the
/// modes that interlock, if no mode has stride 0.
/// @error a mode that is wholly within the reach of the next smaller stride; a negative stride;
/// sizes that do not fit 64 bits.
Result<Layout> left_inverse(const Layout& layout);

/// The coalesced layout R of the indices at which `layout` has the values 0, 1, ... R takes the
/// modes, smallest stride first, as long as each continues the previous ones without a gap. `1:0`
/// if one of several modes has stride 0 (as in PyTorch 2.15), or if no stride is 1.
/// @post layout(R(i)) = i for all i in 0..R.size()-1.
Layout right_inverse(const Layout& layout);

}  // namespace meshard
