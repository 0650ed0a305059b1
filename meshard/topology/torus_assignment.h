// Which part of which direction of a torus each axis of a mesh takes.
#pragma once
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/layout/layout.h"

namespace meshard {

/// Whether a physical direction may be shared by several axes.
enum class AxisSplit { kNever, kWhereNeeded };

/// A value: how many places of each physical direction each axis takes. Axes that share a
/// direction lie in it in their order, the last one on neighboring places.
struct TorusAssignment {
  /// taken[direction][axis].
  std::vector<IntVector> taken;

  /// From the row-major position in the mesh to the one in the physical grid, a tuple of modes for
  /// each axis. @pre made for this shape
  Layout layout(IntView physical) const;
  friend bool operator==(const TorusAssignment&, const TorusAssignment&) = default;
};

/// How many whole directions an axis is tried on: those of a torus. JAX 0.10 tries one more where
/// the devices of a chip are a direction.
inline constexpr std::size_t kTorusDirections = 3;

/// The assignment that JAX 0.10 (mesh_utils) and torch_xla 2.9 (HybridMesh) choose: the last axes
/// first, each the first combination of whole directions, many before few, that has its size. If
/// an axis finds none, kWhereNeeded begins anew with splitting: the last axes first, each takes
/// from the free parts of all directions what has the largest product of whole directions, then the
/// most of them, then the largest part of directions in use, then the most of the first directions.
/// @error unimplemented: directions must be split, and may not; invalid argument: the sizes do not
/// multiply to the same; a size is below 1.
TorusAssignment assign_torus(IntView physical, IntView logical, AxisSplit split,
                             std::size_t most_whole = kTorusDirections,
                             SourceLocation where = SourceLocation::current());

/// The ids of a row-major physical grid in the order of a row-major mesh.
/// @pre `ids` has a value for each place
std::vector<std::int64_t> in_mesh_order(const std::vector<std::int64_t>& ids,
                                        const TorusAssignment& assignment, IntView physical);

}  // namespace meshard
