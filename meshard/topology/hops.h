// How far neighbors in a mesh are apart on the hardware.
#pragma once
#include <string>
#include <vector>

#include "meshard/mesh/mesh.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// A value: of the steps from each device to the next along an axis, the last to the first
/// included (with two devices: of the steps between them).
struct AxisHops {
  /// Links between chips, over the steps within a slice. 0 if there are none.
  double mean = 0;
  std::int64_t worst = 0;
  /// Number of steps within a slice, and from one to another.
  std::int64_t steps = 0, between_slices = 0;
};

/// A value: hops along each axis of a mesh.
struct MeshHops {
  std::vector<AxisHops> axes;
  /// Whether it is known where the grid closes; if not, it is taken to be open.
  bool wrap_known = false;

  /// The largest mean of an axis.
  double worst_mean() const;
  /// The mean over all steps within slices.
  double mean() const;
  /// `data 1 (worst 1), model 1.5 (worst 3)`.
  std::string to_string(const Mesh& mesh) const;
};

/// Measures a mesh: hops are differences of coordinates, added up, the short way round where a
/// direction closes.
/// @error a device is not in the topology; the devices have no coordinates; the mesh has several
/// rows.
MeshHops mesh_hops(const Mesh& mesh, const Topology& topology,
                   SourceLocation where = SourceLocation::current());

}  // namespace meshard
