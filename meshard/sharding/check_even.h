// Meshes that refuse uneven sizes (Mesh::with_uneven).
#pragma once
#include <cstddef>
#include <optional>

#include "meshard/sharding/sharding.h"

namespace meshard {

/// The first dimension that the sharding's mesh refuses because its axes do not divide it; none if
/// all divide, and on meshes that allow uneven sizes.
/// @pre dims.size() >= sharding.rank()
std::optional<std::size_t> refused_dimension(const Sharding& sharding, IntView dims);

/// @error invalid argument for such a dimension, with its size and the number of tiles.
void check_even(const Sharding& sharding, IntView dims, SourceLocation where);

}  // namespace meshard
