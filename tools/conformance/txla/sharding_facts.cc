#include "tools/conformance/txla/sharding_facts.h"

#include <numeric>

#include "meshard/sharding/op_sharding.h"
#include "meshard/sharding/tile_grid.h"
#include "tools/conformance/nested_json.h"

namespace meshard::conformance {
using Json = nlohmann::json;

Json tile_array_facts(const Sharding& sharding) {
  TileArray array = tile_array(sharding);
  return {{"tile_assignment", nested(array.device_ids, array.shape)},
          {"tile_assignment_shape", array.shape}};
}

Json group_facts(const Sharding& sharding) {
  TileGroups tiles = tile_groups(sharding);
  std::vector<std::int64_t> numbers(tiles.groups.size());
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return {{"group_assignment", nested(numbers, tiles.shape)}, {"replication_groups", tiles.groups}};
}

Json tile_facts(const Sharding& sharding) {
  ShardingType type = sharding_type(sharding);
  Json facts = {{"sharding_type", to_string(type)},
                {"group_assignment", Json::array()},
                {"replication_groups", Json::array()}};
  facts.update(tile_array_facts(sharding));
  if (type == ShardingType::kPartial) facts.update(group_facts(sharding));
  return facts;
}

Json op_sharding_fields(const TileAssignment& tiles) {
  bool tiled = tiles.kind == TileKind::kTiled;
  return {{"type", tiled ? "OTHER" : to_string(sharding_type(tiles))},
          {"tile_assignment_dimensions", tiles.dims},
          {"tile_assignment_devices", tiles.devices},
          {"replicate_on_last_tile_dim", tiles.replicate_on_last_tile_dim}};
}

TileAssignment listed_tiles(const Sharding& sharding) {
  return tile_assignment(sharding).with_device_ids(sharding.mesh());
}

}  // namespace meshard::conformance
