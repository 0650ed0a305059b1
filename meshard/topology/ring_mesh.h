// Meshes whose axes are short rings on the hardware, for any shape.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshard/mesh/builders.h"
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

/// A value: a mesh and the hops between its neighbors.
struct RingMesh {
  Mesh mesh;
  /// None if the devices have no coordinates.
  std::optional<MeshHops> hops;
  /// `mesh<x=4, y=2>, hops x 1 (worst 1), y 1 (worst 1)`.
  std::string to_string() const {
    return cat(mesh, ", hops ", hops ? hops->to_string(mesh) : "unknown");
  }
};

/// A mesh of a given shape whose axes are rings of few hops. Uses best_placement on the grid of
/// each slice. Every shape is supported. A single axis over a grid that has a tour of single steps
/// is such a tour.
///
/// Slices become the outer part of the first axes whose sizes they divide, or of the axes that
/// `outer` selects. Devices that do not fill a grid are treated as a line, in the order of their
/// processes, coordinates and ids.
///
/// ```
/// RingMesh ring = ring_mesh(tpu_topology("v5e:8x8").value(), {64});
/// ring.hops->axes[0].mean;  // 1
/// ```
/// @param outer the number of slices that each axis spans; empty (default): chosen automatically
/// @error the product of the sizes is not the number of devices; `outer` does not divide the sizes,
/// or its product is not the number of slices; slices of different sizes; the errors of mesh_axes
/// and Mesh.
RingMesh ring_mesh(const Topology& topology, IntView shape, const MaybeNames& names = std::nullopt,
                   IntView outer = {}, SourceLocation where = SourceLocation::current());

}  // namespace meshard
