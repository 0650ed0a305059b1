// The index of a position along a list of mesh axes.
#pragma once
#include <cstdint>

#include "meshard/mesh/digits.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// A value: for a mesh and a list of axes or sub-axes (major first), the function from positions to
/// the index along those axes, and its inverse, as digits of the position. A few integers; nothing
/// depends on the number of devices.
///
/// For `mesh<x=2, y=4>` and {"y", "x"}, position 5 = (1, 1) has index 1 * 2 + 1 = 3.
class AxesIndex : public Digits {
 public:
  /// No axes: one index, 0.
  AxesIndex() = default;
  /// @error unknown axis; a sub-axis that does not divide its axis; two that overlap.
  AxesIndex(const Mesh& mesh, const AxisList& axes);
};

/// The axes and sub-axes of `mesh` that `axes` leaves over, in mesh order (a whole axis as one).
/// @error as AxesIndex
AxisList remaining_axes(const Mesh& mesh, const AxisList& axes);

/// The axes that step through positions as `layout` does (a flat layout of positions, any order),
/// major first, neighbouring parts of one axis merged. The inverse of AxesIndex::layout, up to axes
/// of size 1.
/// @error a mode does not fall on whole axes or sub-axes of `mesh`.
Result<AxisList> axes_of(const Mesh& mesh, const Layout& layout);

/// Appends `axis` (major first), merged with the last one if it continues it: "x":(1)2 then
/// "x":(2)2.
void push_axis(const Mesh& mesh, AxisList& axes, const AxisRef& axis);

}  // namespace meshard
