// The index of a position along a list of mesh axes.
#pragma once
#include <cstdint>
#include <span>

#include "meshard/layout/layout.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// A value: for a mesh and a list of axes or sub-axes (major first), the function from positions to
/// the index along those axes, and its inverse. A few integers; nothing depends on the number of
/// devices.
///
/// For `mesh<x=2, y=4>` and {"y", "x"}, position 5 = (1, 1) has index 1 * 2 + 1 = 3.
class AxesIndex {
 public:
  /// No axes: one index, 0.
  AxesIndex() = default;
  /// @error unknown axis; a sub-axis that does not divide its axis; two that overlap.
  AxesIndex(const Mesh& mesh, const AxisList& axes);

  /// Number of indices: the product of the sizes of the axes.
  std::int64_t size() const { return size_; }
  /// The index of a position. @pre the position is one of the mesh
  std::int64_t operator()(std::int64_t position) const {
    std::int64_t index = 0;
    for (const Digit& digit : digits_)
      index = index * digit.size + position / digit.stride % digit.size;
    return index;
  }
  /// The position with this index that is 0 along all other axes. @pre 0 <= index < size()
  /// @post operator()(offset(index)) = index
  std::int64_t offset(std::int64_t index) const {
    std::int64_t position = 0;
    for (std::size_t i = digits_.size(); i-- > 0;) {
      position += index % digits_[i].size * digits_[i].stride;
      index /= digits_[i].size;
    }
    return position;
  }
  /// The index of every position 0..n-1 of the mesh; 2 or 3 operations a position.
  void fill(std::span<std::int64_t> index_by_position) const;
  /// The coalesced layout index -> offset; equal for axes that split positions in the same way.
  Layout layout() const;

  friend bool operator==(const AxesIndex&, const AxesIndex&) = default;

 private:
  struct Digit {
    std::int64_t size = 1;
    std::int64_t stride = 1;  // in positions
    friend bool operator==(const Digit&, const Digit&) = default;
  };
  // Coalesced, without digits of size 1, major first.
  InlineVector<Digit, 3> digits_;
  std::int64_t size_ = 1;
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
