// Some whole axes of a mesh, as a set.
#pragma once
#include <cstdint>
#include <string>

#include "meshard/base/source_location.h"
#include "meshard/mesh/axis_ref.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// A value: a set of whole axes of one mesh, with one bit for each axis. The set does not store the
/// mesh; callers pass it where it is needed.
class AxisSet {
 public:
  /// No axis.
  AxisSet() = default;
  /// The axes that the list names.
  /// @error an axis that the mesh does not have or that is named twice; a sub-axis; a mesh of more
  /// than 64 axes.
  AxisSet(const Mesh& mesh, const AxisList& axes, SourceLocation where = SourceLocation::current());
  /// All axes of the mesh. @error a mesh of more than 64 axes.
  static AxisSet all(const Mesh& mesh, SourceLocation where = SourceLocation::current());

  bool empty() const { return bits_ == 0; }
  /// True if each axis of `other` is in this set.
  bool contains(AxisSet other) const { return (other.bits_ & ~bits_) == 0; }
  /// True if axis number `axis` of the mesh is in the set. @pre axis < 64
  bool contains(std::size_t axis) const { return (bits_ >> axis & 1) != 0; }

  friend AxisSet operator|(AxisSet a, AxisSet b) { return AxisSet(a.bits_ | b.bits_); }
  friend AxisSet operator&(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & b.bits_); }
  /// The axes of `a` that are not in `b`.
  friend AxisSet operator-(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & ~b.bits_); }
  friend bool operator==(AxisSet, AxisSet) = default;

  /// The axes in mesh order.
  AxisList of(const Mesh& mesh) const;
  /// `{"x", "y"}`.
  std::string to_string(const Mesh& mesh) const { return meshard::to_string(of(mesh)); }

 private:
  explicit AxisSet(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = 0;
};

}  // namespace meshard
