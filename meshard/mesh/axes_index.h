// The index of a position along a list of mesh axes.
#pragma once
#include <cstdint>

#include "meshard/mesh/digits.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// Maps a position to its index along a list of axes, and back. A value: for a mesh and a list of
/// axes or sub-axes (major first), the index as digits of the position. It takes a few integers,
/// whatever the number of devices.
///
/// For `mesh<x=2, y=4>` and {"y", "x"}, position 5 = (1, 1) has index 1 * 2 + 1 = 3.
class AxesIndex : public Digits {
 public:
  /// No axes: the only index is 0.
  AxesIndex() = default;
  /// @error unknown axis; a sub-axis that does not divide its axis; two that overlap.
  AxesIndex(const Mesh& mesh, const AxisList& axes);
};

/// The axes and sub-axes of `mesh` that `axes` does not use, in mesh order. An unused axis is
/// returned whole.
/// @error as AxesIndex
AxisList remaining_axes(const Mesh& mesh, const AxisList& axes);

/// The axes and sub-axes that step through positions as `layout` does, major first. `layout` is a
/// flat layout of positions, with its modes in any order. Adjacent parts of one axis are merged.
/// The inverse of AxesIndex::layout, except for axes of size 1.
/// @error a mode does not consist of whole axes or sub-axes of `mesh`.
Result<AxisList> axes_of(const Mesh& mesh, const Layout& layout);

/// Appends `axis` to a list (major first), merging it with the last entry if it continues that one:
/// "x":(1)2 and "x":(2)2 become "x":(1)4. A part that covers its axis becomes the whole axis.
void push_axis(const Mesh& mesh, AxisList& axes, const AxisRef& axis);

}  // namespace meshard
