// Left inverse: from a layout's values back to the indices (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The coalesced layout R that takes the values of `layout` to their indices, as far as its modes,
/// smallest stride first, nest within one another. R ends before a mode that interlocks with the
/// smaller ones (its stride is smaller than their reach, as is so wherever values repeat) and at
/// one whose stride their reach does not divide. If the layout is orthogonal, R covers all its
/// values, and what lies between them goes to indices from layout.size() on, each to another. `1:0`
/// if one of the modes has stride 0.
/// @post R(layout(i)) = i for all i with layout(i) below R.size() and below the strides of the
/// modes that interlock, if no mode has stride 0.
/// @error a mode that lies wholly within the reach of the next smaller stride; a negative stride;
/// sizes that do not fit 64 bits.
Result<Layout> left_inverse(const Layout& layout);

}  // namespace meshard
