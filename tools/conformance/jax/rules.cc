#include "tools/conformance/jax/rules.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

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

bool differs_by_rounding(const nlohmann::json& ours, const nlohmann::json& recorded) {
  constexpr std::pair<std::string_view, double> kEpsilons[] = {
      {"bfloat16", 0x1p-7}, {"float16", 0x1p-10}, {"float32", 0x1p-23}, {"float64", 0x1p-52}};
  double epsilon = 0;
  for (auto [dtype, of_dtype] : kEpsilons)
    if (recorded.at("dtype") == dtype) epsilon = of_dtype;
  const nlohmann::json &mine = ours.at("data"), &theirs = recorded.at("data");
  if (epsilon == 0 || ours.at("dtype") != recorded.at("dtype") ||
      ours.at("shape") != recorded.at("shape") || mine.size() != theirs.size())
    return false;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i] == theirs[i]) continue;
    if (!mine[i].is_number() || !theirs[i].is_number()) return false;
    double a = mine[i], b = theirs[i];
    if (std::abs(a - b) > 4 * epsilon * std::max(1.0, std::abs(b))) return false;
  }
  return true;
}

}  // namespace meshard::conformance
