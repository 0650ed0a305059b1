#include "tools/conformance/txla/rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "meshard/base/cat.h"
#include "meshard/sharding/tile_assignment.h"
#include "tools/conformance/nested_json.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;

/// The replica ids of each part, keyed by the indices of the part, in the order of the shards.
std::map<std::string, std::vector<std::int64_t>> replicas_of(const Json& shards) {
  std::map<std::string, std::vector<std::int64_t>> replicas;
  for (const Json& shard : shards)
    replicas[shard.at("indices").dump()].push_back(shard.at("replica_id"));
  return replicas;
}

/// Whether the numbers are 0, 1, ... in order; or, for several tiles, each equally often.
bool numbers_replicas(const std::vector<std::int64_t>& numbers) {
  std::vector<std::int64_t> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  std::size_t replicas = static_cast<std::size_t>(sorted.back()) + 1;
  if (replicas == sorted.size() && sorted != numbers) return false;
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<std::int64_t>(i * replicas / sorted.size())) return false;
  return sorted.size() % replicas == 0;
}

}  // namespace

bool reshard_on_remark(const Json& recorded_error, const std::string& asked,
                       const Json& our_state) {
  bool in_place = our_state.at("where") == "ir" || our_state.at("data_sharding") == asked;
  return recorded_error.at("category") == "already_sharded_differently" &&
         our_state.at("spec") == asked && in_place;
}

bool short_spec(const Json& recorded_error, std::size_t spec_entries, std::size_t rank) {
  return recorded_error.at("category") == "spec_rank_mismatch" && spec_entries < rank;
}

bool short_spec(bool recorded_can_apply, bool ours_can_apply, std::size_t spec_entries,
                std::size_t rank) {
  return !recorded_can_apply && ours_can_apply && spec_entries < rank;
}

bool short_spec(const Json& recorded, const Json& ours) {
  if (recorded.at("sharding_type") != "TILED" || !recorded.at("replication_groups").empty())
    return false;
  if (ours.at("sharding_type") != recorded.at("get_op_sharding_type")) return false;
  const Json& groups = ours.at("replication_groups");
  bool even = std::all_of(groups.begin(), groups.end(),
                          [&](const Json& group) { return group.size() == groups[0].size(); });
  return even && flat(groups).data == flat(recorded.at("tile_assignment")).data;
}

bool uneven_kept(const std::string& recorded, const std::string& ours, const Json& shape) {
  if (recorded != "{replicated}") return false;
  Result<TileAssignment> tiles = TileAssignment::parse(ours);
  if (!tiles.ok() || tiles->kind != TileKind::kTiled || tiles->rank() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d].get<std::int64_t>() % tiles->dims[d] != 0) return true;
  return false;
}

bool fewer_transfers(const TransferTotals& ours, const TransferTotals& recorded) {
  return ours.buffers_sent <= recorded.buffers_sent && ours.bytes_sent <= recorded.bytes_sent &&
         ours.bytes_read <= recorded.bytes_read;
}

bool mesh_order_replicas_in_text(const std::string& our_text, const std::string& recorded_text) {
  Result<TileAssignment> ours = TileAssignment::parse(our_text);
  return ours.ok() && ours->with_sorted_replicas().to_string() == recorded_text;
}

bool mesh_order_replicas(const Json& our_shards, const Json& recorded_shards) {
  auto ours = replicas_of(our_shards);
  for (const auto& [part, recorded] : replicas_of(recorded_shards)) {
    const std::vector<std::int64_t>& own = ours[part];
    if (own == recorded) continue;
    if (!numbers_replicas(recorded)) return false;
    if (!std::is_permutation(own.begin(), own.end(), recorded.begin(), recorded.end()))
      return false;
  }
  return true;
}

bool two_core_and_single_slice_meshes(const nlohmann::json& recorded_error,
                                      const nlohmann::json& our_mesh, std::size_t devices) {
  static const std::set<std::string> refusals = {
      "dcn_shape_required", "physical_logical_size_mismatch", "no_axis_assignment"};
  if (!refusals.contains(recorded_error.at("category"))) return false;
  nlohmann::json flat = our_mesh.flatten();
  std::set<std::int64_t> ids;
  for (const nlohmann::json& id : flat) ids.insert(id.get<std::int64_t>());
  return flat.size() == devices && ids.size() == devices;
}

bool no_abort(const Json& recorded_error, const std::string& op) {
  bool computes = op == "sync" || op == "read" || op == "shards";
  const Json& category = recorded_error.at("category");
  return category == "process_abort" || (computes && category != "graph_mixes_device_sets");
}

}  // namespace meshard::conformance
