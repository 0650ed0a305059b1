// Random shardings for property tests.
#pragma once
#include <vector>

#include "meshard/mesh/mesh_testutil.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A sharding of `rank` dimensions: random parts of axes, assigned to dimensions or left out.
inline Sharding random_sharding(TestRandom& random, const Mesh& mesh, std::size_t rank) {
  std::vector<AxisList> axes(rank);
  for (const AxisRef& axis : random_axes(random, mesh)) {
    std::size_t d = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(rank)));
    if (d < rank) axes[d].push_back(axis);
  }
  std::vector<DimensionSpec> dimensions;
  for (AxisList& list : axes) dimensions.emplace_back(std::move(list), random.between(0, 4) == 0);
  return Sharding(mesh, PartitionSpec(std::move(dimensions)));
}

}  // namespace meshard
