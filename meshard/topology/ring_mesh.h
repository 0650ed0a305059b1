// Meshes whose axes are short rings on the hardware, for any shape.
#pragma once
#include <optional>

#include "meshard/mesh/builders.h"
#include "meshard/topology/hops.h"

namespace meshard {

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
