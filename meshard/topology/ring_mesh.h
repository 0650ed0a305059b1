// Meshes whose axes are short rings on the hardware, for any shape.
#pragma once
#include <optional>

#include "meshard/mesh/builders.h"
#include "meshard/topology/hops.h"

namespace meshard {

/// A value: a mesh and how far its neighbors are apart.
struct RingMesh {
  Mesh mesh;
  /// None if the devices have no coordinates.
  std::optional<MeshHops> hops;
};

/// A mesh of this shape whose axes are rings of few hops: best_placement on the grid of each slice.
/// No shape is refused. One axis over a grid that has a tour of single steps is such a tour.
///
/// Slices become the outer part of the first axes whose sizes they divide, or of those that `outer`
/// says. Devices that fill no grid are taken as a line, in the order of their processes,
/// coordinates and ids.
///
/// ```
/// RingMesh ring = ring_mesh(tpu_topology("v5e:8x8").value(), {64});
/// ring.hops->axes[0].mean;  // 1
/// ```
/// @param outer for each axis how many slices it goes over; empty: chosen
/// @error the sizes do not multiply to the number of devices; `outer` does not divide them or has
/// not a place for each slice; slices of different sizes; what mesh_axes and Mesh throw.
RingMesh ring_mesh(const Topology& topology, IntView shape, const MaybeNames& names = std::nullopt,
                   IntView outer = {}, SourceLocation where = SourceLocation::current());

}  // namespace meshard
