// Which part of which direction of a torus each axis of a mesh takes.
#pragma once
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/layout/layout.h"

namespace meshard {

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

}  // namespace meshard
