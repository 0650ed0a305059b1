#include "tools/conformance/jax/rules.h"

#include "meshard/sharding/tile_assignment.h"

namespace meshard::conformance {

bool uneven_kept(const nlohmann::json& recorded, const std::string& our_tiles,
                 const nlohmann::json& our_shard_shape, const nlohmann::json& shape) {
  if (!recorded.is_object() || recorded.value("error", "") != "IndivisibleError") return false;
  Result<TileAssignment> tiles = TileAssignment::parse(our_tiles);
  if (!tiles.ok() || tiles->kind != TileKind::kTiled || tiles->rank() != shape.size()) return false;
  bool uneven = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    auto whole = shape[d].get<std::int64_t>(), shard = our_shard_shape[d].get<std::int64_t>();
    std::int64_t count = tiles->dims[d];
    if (shard != (whole + count - 1) / count) return false;
    uneven = uneven || whole % count != 0;
  }
  return uneven;
}

bool devices_in_any_order(const std::string& module) {
  std::size_t first = module.find("sdy.mesh @"), second = module.find("sdy.mesh @", first + 1);
  return second != std::string::npos && module.find("device_ids", first) != std::string::npos;
}

}  // namespace meshard::conformance
