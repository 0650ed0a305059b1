// Reorders a grid so that the devices of each process are neighbors in the mesh.
#pragma once
#include "meshard/topology/physical_grid.h"

namespace meshard {

/// The grid with reordered directions, so that a mesh of `shape` keeps the 2 x 2 x 1 chips of each
/// process together. Supports the same few pairs of grid and shape as JAX 0.10.
/// @error no order is known for this grid and shape
PhysicalGrid contiguous_grid(const PhysicalGrid& grid, IntView shape, SourceLocation where);

}  // namespace meshard
