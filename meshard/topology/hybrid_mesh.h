// Meshes over hardware: axes inside slices (ICI) and over them (DCN).
#pragma once
#include <vector>

#include "meshard/mesh/builders.h"
#include "meshard/topology/topology.h"
#include "meshard/topology/torus_assignment.h"

namespace meshard {

struct HybridOptions {
  AxisSplit split = AxisSplit::kWhereNeeded;
  /// What the outer shape counts.
  Granule granule = Granule::kSlice;
  /// The devices of a process shall be neighbors in the mesh. Only a few shapes can have this.
  bool contiguous_processes = false;
  /// Devices without coordinates (virtual CPUs) are taken in the order of their list, so that a
  /// program for slices of TPUs can be tried on them: the k-th part of the list is slice k.
  /// Devices with coordinates are not affected. Default: they are an error.
  bool allow_no_coords = false;
};

/// The mesh of axes inner[i] * outer[i], where the outer index says in which granule a device is.
/// Within a granule the axes lie along the directions of the torus as assign_torus says, or, for
/// boards of known TPUs, in the order that board_order says: the device orders of JAX 0.10
/// (create_device_mesh, create_hybrid_device_mesh) and of torch_xla 2.9 (HybridMesh).
///
/// Chips with several devices, where both of these fail (but for TPU v2, v3 and 7x), have these as
/// a further, innermost direction, which may be split in any case. A single slice may have a slice
/// index.
///
/// ```
/// Topology pods = tpu_topology("v5e:16x16*2");
/// hybrid_mesh(pods, {1, 16, 16}, {2, 1, 1}, {{"dp", "fsdp", "tp"}});  // dp over the slices
/// ```
/// @param inner, outer as many sizes as axes; an empty outer shape is all ones
/// @error invalid argument: shapes of different lengths; the outer shape does not have a place for
/// each granule, or the inner one for each of its devices; contiguous_processes, and no such order
/// is known; what mesh_axes and Mesh throw. failed precondition: the devices of a granule do not
/// fill a grid. unimplemented: a direction would have to be split and may not.
Mesh hybrid_mesh(const Topology& topology, IntView inner, IntView outer,
                 const MaybeNames& names = std::nullopt, const HybridOptions& options = {},
                 SourceLocation where = SourceLocation::current());

/// The mesh over one granule that holds all devices of a topology, whatever their slices.
/// @error as above
Mesh torus_mesh(const Topology& topology, IntView shape, const MaybeNames& names = std::nullopt,
                const HybridOptions& options = {},
                SourceLocation where = SourceLocation::current());

}  // namespace meshard
