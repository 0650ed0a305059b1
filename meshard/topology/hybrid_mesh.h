// Meshes over hardware: which part of a torus each axis takes, axes within slices (ICI) and across
// slices (DCN).
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/layout/int_tuple.h"
#include "meshard/layout/layout.h"
#include "meshard/mesh/builders.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// The device ids, in mesh order, that JAX 0.10 uses for boards of known TPUs. They do not depend
/// on the axes, except as listed. None if JAX has no such order for these devices and this shape.
///
/// - TPU v2, v3: for eight devices, or an innermost axis of eight, rings over boards of 2 x 2 chips
///   with two devices each; otherwise the order of the list.
/// - TPU 7x: the same rings for eight and sixteen devices.
/// - TPU v5e, v6e: a ring over 2 x 2 and 4 x 4 chips (the latter for one axis only), two rows for
///   2 x 4 chips.
std::optional<std::vector<std::int64_t>> board_order(std::span<const DeviceAttributes> devices,
                                                     IntView shape);

/// Calls take(shares) for each list of shares, one per direction, whose product is `size`. Each
/// share divides the free places of its direction. The lists come in ascending lexicographic order.
/// @pre `size` and all entries of `free` are at least 1
template <class Take>
void for_each_share(IntView free, std::int64_t size, Take&& take) {
  auto extend = [&](auto&& self, IntVector& shares, std::int64_t rest) -> void {
    if (shares.size() == free.size()) {
      if (rest == 1) take(shares);
      return;
    }
    std::int64_t room = free[shares.size()];
    for (std::int64_t share = 1; share <= room && share <= rest; ++share) {
      if (room % share != 0 || rest % share != 0) continue;
      shares.push_back(share);
      self(self, shares, rest / share);
      shares.pop_back();
    }
  };
  IntVector shares;
  extend(extend, shares, size);
}

/// Whether a physical direction may be shared by several axes.
enum class AxisSplit { kNever, kWhereNeeded };

/// A value: how many places of each physical direction each axis takes. Axes that share a direction
/// are nested in it in their order, the last one on neighboring places.
struct TorusAssignment {
  /// taken[direction][axis].
  std::vector<IntVector> taken;

  /// The layout from row-major mesh positions to row-major positions in the physical grid, with a
  /// tuple of modes for each axis. @pre the assignment was made for this grid
  Layout layout(IntView physical) const;
  friend bool operator==(const TorusAssignment&, const TorusAssignment&) = default;
};

/// The maximum number of whole directions for one axis: those of a torus. JAX 0.10 tries one more
/// if the devices of a chip are a direction.
inline constexpr std::size_t kTorusDirections = 3;

/// The assignment that JAX 0.10 (mesh_utils) and torch_xla 2.9 (HybridMesh) choose. Axes are
/// assigned from last to first. Each takes the first combination of whole directions that has its
/// size; combinations of more directions are tried first. If an axis finds none, kWhereNeeded
/// starts again with splitting, also from last to first: each axis takes the free parts with the
/// largest product of whole directions, then with the most whole directions, then with the largest
/// part of directions in use, then with the most of the first directions.
/// @error unimplemented: directions would have to be split, and `split` is kNever; invalid
/// argument: the two products of sizes differ; a size is below 1.
TorusAssignment assign_torus(IntView physical, IntView logical, AxisSplit split,
                             std::size_t most_whole = kTorusDirections,
                             SourceLocation where = SourceLocation::current());

/// The ids of a row-major physical grid in the order of a row-major mesh.
/// @pre `ids` has a value for each place
std::vector<std::int64_t> in_mesh_order(const std::vector<std::int64_t>& ids,
                                        const TorusAssignment& assignment, IntView physical);

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
/// board_order. The device orders equal those of JAX 0.10 (create_device_mesh,
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
/// @error the errors of hybrid_mesh()
Mesh torus_mesh(const Topology& topology, IntView shape, const MaybeNames& names = std::nullopt,
                const HybridOptions& options = {},
                SourceLocation where = SourceLocation::current());

}  // namespace meshard
