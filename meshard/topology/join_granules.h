// Meshes of granules side by side.
#pragma once
#include <vector>

#include "meshard/layout/int_tuple.h"

namespace meshard {

/// The values of meshes of one shape, side by side: in mesh order of the shape inner[i] * outer[i],
/// whose index along axis i is that of the mesh times inner[i] plus that within it. The meshes are
/// counted row-major over `outer`.
/// @pre as many meshes as `outer` has places, each with as many values as `inner` has
std::vector<std::int64_t> join_granules(const std::vector<std::vector<std::int64_t>>& meshes,
                                        IntView inner, IntView outer);

}  // namespace meshard
