// Meshes over hardware, with axes within slices (ICI) and across slices (DCN).
#pragma once
#include <vector>

#include "meshard/mesh/builders.h"
#include "meshard/topology/topology.h"
#include "meshard/topology/torus_assignment.h"

namespace meshard {

/// Options of hybrid_mesh() and torus_mesh().
struct HybridOptions {
  /// Whether several axes may share a direction of the torus. Default: where needed.
  AxisSplit split = AxisSplit::kWhereNeeded;
  /// What the outer shape counts: slices (default) or processes.
  Granule granule = Granule::kSlice;
  /// Keeps the devices of each process together in the mesh. Possible for a few shapes only.
  /// Default: false.
  bool contiguous_processes = false;
  /// Uses devices without coordinates (virtual CPUs) in the order of their list, so that a program
  /// for several TPU slices can be tried on them: the k-th part of the list acts as slice k.
  /// Devices with coordinates are not affected. Default: false, devices without coordinates are an
  /// error, unless each granule has one device.
  bool allow_no_coords = false;
};

/// A mesh with axes of size inner[i] * outer[i]; the outer index selects the granule. Within a
/// granule, assign_torus maps the axes to the directions of the torus; boards of known TPUs use
/// board_order. The device orders are those of JAX 0.10 (create_device_mesh,
/// create_hybrid_device_mesh) and of torch_xla 2.9 (HybridMesh).
///
/// Two inputs that both references reject are supported. Chips with several devices (other than TPU
/// v2, v3 and 7x) get an additional innermost direction for the devices of a chip, and directions
/// may be split whatever `split` is. A single slice may have a slice index.
///
/// ```
/// Topology pods = tpu_topology("v5e:16x16*2");
/// hybrid_mesh(pods, {1, 16, 16}, {2, 1, 1}, {{"dp", "fsdp", "tp"}});  // dp over the slices
/// ```
/// @param inner, outer one size for each axis; an empty outer shape means all ones
/// @error invalid argument: shapes of different lengths; the outer shape does not match the number
/// of granules, or the inner shape the number of devices in a granule; contiguous_processes is set
/// and no such order is known; the errors of mesh_axes and Mesh. Failed precondition: the devices
/// of a granule do not fill a grid, or contiguous_processes is set for such chips with several
/// devices. Unimplemented: a direction would have to be split, and `split` does not allow it.
Mesh hybrid_mesh(const Topology& topology, IntView inner, IntView outer,
                 const MaybeNames& names = std::nullopt, const HybridOptions& options = {},
                 SourceLocation where = SourceLocation::current());

/// A mesh over all devices of a topology, treated as one granule whatever their slices.
/// @error as above
Mesh torus_mesh(const Topology& topology, IntView shape, const MaybeNames& names = std::nullopt,
                const HybridOptions& options = {},
                SourceLocation where = SourceLocation::current());

}  // namespace meshard
