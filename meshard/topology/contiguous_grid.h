// Grids turned so that the devices of each process are neighbors in the mesh.
#pragma once
#include "meshard/topology/physical_grid.h"

namespace meshard {

/// The grid, with its directions in the order in which a mesh of `shape` has the 2 x 2 x 1 chips
/// of each process together; JAX 0.10 knows the same few pairs of grid and shape.
/// @error no order is known
PhysicalGrid contiguous_grid(const PhysicalGrid& grid, IntView shape, SourceLocation where);

}  // namespace meshard
