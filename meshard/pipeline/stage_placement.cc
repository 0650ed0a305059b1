#include "meshard/pipeline/stage_placement.h"

#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/runtime/transfer.h"

namespace meshard::internal {

bool is_on(const Tensor& value, const Mesh& mesh) {
  std::optional<Sharding> sharding = value.sharding();
  return sharding && sharding->mesh().same_devices(mesh);
}

Sharding like_sharding(const std::optional<Sharding>& sharding, const Mesh& mesh,
                       const Shape& shape) {
  std::vector<DimensionSpec> dimensions;
  for (int d = 0; d < shape.rank(); ++d) {
    AxisList axes;
    std::int64_t tiles = 1;
    auto dimension = static_cast<std::size_t>(d);
    if (sharding && dimension < sharding->rank())
      for (const AxisRef& axis : sharding->axes(dimension)) {
        if (!axis.is_whole() || !mesh.find_axis(axis.name)) break;
        tiles *= mesh.axis_size(AxisRef(axis.name));
        if (shape[d] % tiles != 0) break;
        axes.push_back(AxisRef(axis.name));
      }
    dimensions.emplace_back(std::move(axes));
  }
  return Sharding(mesh, PartitionSpec(std::move(dimensions)));
}

Tensor placed(const Tensor& value, const Mesh& mesh) {
  if (is_on(value, mesh)) return value;
  Sharding there = like_sharding(value.sharding(), mesh, value.shape());
  return value.sharding() ? transfer(value, there) : mark_sharding(value, there);
}

}  // namespace meshard::internal
