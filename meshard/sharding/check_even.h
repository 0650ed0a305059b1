// Checks for meshes that reject uneven sizes (Mesh::with_uneven).
#pragma once
#include <cstddef>
#include <optional>

#include "meshard/sharding/sharding.h"

namespace meshard {

/// The first dimension that the sharding's mesh rejects because it is uneven. None if all
/// dimensions are even, or if the mesh allows uneven sizes.
/// @pre dims.size() >= sharding.rank()
std::optional<std::size_t> refused_dimension(const Sharding& sharding, IntView dims);

/// Throws if refused_dimension() finds a dimension.
/// @error invalid argument, with the size of the dimension and its number of tiles.
void check_even(const Sharding& sharding, IntView dims, SourceLocation where);

}  // namespace meshard
