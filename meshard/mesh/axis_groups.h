// The groups of positions that collectives over given axes run in.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/mesh/axes_index.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// A value: the partition of a mesh into groups that differ only along `axes`. Each group is
/// computed when it is requested. Groups are numbered by their index along the remaining axes;
/// members are in ascending (mesh) order.
///
/// For `mesh<x=2, y=4>` and {"x"}: groups {0,4}, {1,5}, {2,6}, {3,7}.
class AxisGroups {
 public:
  /// @error unknown axis; a sub-axis that does not divide its axis; two that overlap.
  AxisGroups(const Mesh& mesh, const AxisList& axes);

  /// Number of groups.
  std::int64_t count() const { return base_.size(); }
  std::int64_t group_size() const { return member_.size(); }
  /// Position of member k of group g. @pre both in range
  std::int64_t member(std::int64_t g, std::int64_t k) const {
    return base_.offset(g) + member_.offset(k);
  }
  /// The positions of group g. @error g is not in 0..count()-1.
  std::vector<std::int64_t> group(std::int64_t g) const;
  /// The group of a position, and its index in that group. @pre the position is in the mesh
  std::int64_t group_of(std::int64_t position) const { return base_(position); }
  std::int64_t member_of(std::int64_t position) const { return member_(position); }
  /// All groups. Takes time proportional to the number of devices.
  std::vector<std::vector<std::int64_t>> groups() const;

  /// The same partition of the positions.
  friend bool operator==(const AxisGroups&, const AxisGroups&) = default;

 private:
  AxesIndex base_;    // over the remaining axes
  AxesIndex member_;  // over the axes, in mesh order
};

}  // namespace meshard
