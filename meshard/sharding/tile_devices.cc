#include "meshard/sharding/tile_devices.h"

#include "meshard/mesh/axes_index.h"

namespace meshard {

TileArray tile_array(const Sharding& sharding) {
  const Mesh& mesh = sharding.mesh();
  TileArray array;
  AxisList order;
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    if (sharding.axes(d).empty()) continue;
    array.shape.push_back(sharding.num_tiles(d));
    for (const AxisRef& axis : sharding.axes(d)) order.push_back(axis);
  }
  for (const AxisRef& axis : sharding.unused_axes()) {
    array.shape.push_back(mesh.axis_size(axis));
    order.push_back(axis);
  }
  AxesIndex index(mesh, order);
  for (std::int64_t i = 0; i < mesh.size(); ++i)
    array.device_ids.push_back(mesh.device_id(index.offset(i)));
  return array;
}

TileGroups tile_groups(const Sharding& sharding) {
  TileGroups result;
  IntVector tile;
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    result.shape.push_back(sharding.num_tiles(d));
    tile.push_back(0);
  }
  for (std::int64_t t = 0; t < sharding.num_tiles(); ++t) {
    std::int64_t rest = t;
    for (std::size_t d = sharding.rank(); d-- > 0;) {
      tile[d] = rest % result.shape[d];
      rest /= result.shape[d];
    }
    std::vector<std::int64_t>& group = result.groups.emplace_back();
    for (std::int64_t replica = 0; replica < sharding.num_replicas(); ++replica)
      group.push_back(sharding.mesh().device_id(sharding.position_of(tile, replica)));
  }
  return result;
}

std::string TileArray::to_string() const {
  return cat('[', join(shape, ","), "] of devices ", join(device_ids, ","));
}

std::string TileGroups::to_string() const {
  std::string out;
  for (const std::vector<std::int64_t>& group : groups)
    append(out, cat(out.empty() ? "{" : ", {", join(group, ","), '}'));
  return cat('[', join(shape, ","), "] tiles on ", out);
}

}  // namespace meshard
