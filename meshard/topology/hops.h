// How far apart neighbors in a mesh are on the hardware.
#pragma once
#include <string>
#include <vector>

#include "meshard/mesh/mesh.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// A value: the hops between neighbors along one axis. Counts the steps from each device to the
/// next, including from the last to the first; an axis of two devices has one step.
struct AxisHops {
  /// The mean and the largest number of links per step, over the steps within a slice. 0 if there
  /// are no such steps.
  double mean = 0;
  std::int64_t worst = 0;
  /// The number of steps within slices, and between slices.
  std::int64_t steps = 0, between_slices = 0;
  /// `1.5 (worst 3)`; with several slices `1 (worst 1, 2 between slices)`.
  std::string to_string() const;
};

/// A value: hops along each axis of a mesh.
struct MeshHops {
  std::vector<AxisHops> axes;
  /// Whether it is known which directions of the grid close. If not, all count as open.
  bool wrap_known = false;

  /// The largest mean among the axes.
  double worst_mean() const;
  /// The mean over all steps within slices.
  double mean() const;
  /// `1 (worst 1), 1.5 (worst 3)`.
  std::string to_string() const;
  /// The same with the names of the axes: `data 1 (worst 1), model 1.5 (worst 3)`.
  std::string to_string(const Mesh& mesh) const;
};

/// Measures the hops along each axis of a mesh. The hops between two devices are the sum of their
/// coordinate differences, the short way around in directions that close.
/// @error a device is not in the topology; the devices have no coordinates; the mesh has several
/// rows.
MeshHops mesh_hops(const Mesh& mesh, const Topology& topology,
                   SourceLocation where = SourceLocation::current());

}  // namespace meshard
