// Left inverse: from a layout's values back to the indices (row-major).
#pragma once
#include "meshard/layout/layout.h"

namespace meshard {

/// The coalesced layout R that takes the values of `layout` below R.size() to their indices. If the
/// layout is orthogonal, these are all its values; what lies between them goes to indices from
/// layout.size() on, each to another. Else R ends with the first mode, smallest stride first, that
/// the reach of the smaller ones does not divide. `1:0` if one of the modes has stride 0, whose
/// indices nothing tells apart.
/// @post R(layout(i)) = i for all i with layout(i) < R.size(), if no mode has stride 0.
/// @error modes interlock (one's stride is smaller than the reach of a smaller one), as they do
/// whenever values repeat; a negative stride; a reach that does not fit 64 bits.
Result<Layout> left_inverse(const Layout& layout);

}  // namespace meshard
