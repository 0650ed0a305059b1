// Joins the meshes of several granules.
#pragma once
#include <vector>

#include "meshard/layout/int_tuple.h"

namespace meshard {

/// Joins meshes of shape `inner` into one mesh of shape inner[i] * outer[i], and returns its values
/// in mesh order. The index along axis i is the index of the granule along axis i times inner[i],
/// plus the index within the granule. `meshes` is row-major over `outer`.
/// @pre the number of meshes is the product of `outer`; each has as many values as the product of
/// `inner`
std::vector<std::int64_t> join_granules(const std::vector<std::vector<std::int64_t>>& meshes,
                                        IntView inner, IntView outer);

}  // namespace meshard
