// Left inverse: maps a layout's values back to its indices (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

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

}  // namespace meshard
