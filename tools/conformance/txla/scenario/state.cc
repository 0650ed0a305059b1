#include "tools/conformance/txla/scenario/state.h"

#include <algorithm>

#include "meshard/runtime/shards.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/sharding_text.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;

std::string where_is(const Tensor& tensor) {
  std::string placement = tensor.placement();
  if (placement == "host") return placement;
  return placement.starts_with("device") ? "device" : "ir";
}

Json box_of(const LocalShard& shard) {
  Json indices = Json::array();
  for (const auto& range : shard.box()) indices.push_back({range.start, range.stop});
  return indices;
}

}  // namespace

Json state_of(const Tensor& tensor) {
  Json state = {{"where", where_is(tensor)}, {"spec", ""},
                {"type", nullptr},           {"data_sharding", nullptr},
                {"num_shards", nullptr},     {"shape", list_of(tensor.shape())}};
  if (tensor.placement().starts_with("manual")) {
    state["spec"] = "{manual}";
    state["type"] = "MANUAL";
  } else if (std::optional<Sharding> annotation = tensor.sharding()) {
    state["spec"] = hlo_text(*annotation);
    state["type"] = canonical_type_name(*annotation);
  }
  if (state["where"] != "device") return state;
  std::optional<Sharding> stored = tensor.stored_sharding();
  state["data_sharding"] = stored ? hlo_text(*stored) : "{replicated}";
  state["num_shards"] = stored ? stored->mesh().size() : 1;
  return state;
}

Json shards_of(const Tensor& tensor) {
  std::vector<LocalShard> shards = local_shards(tensor);
  std::sort(shards.begin(), shards.end(),
            [](const LocalShard& a, const LocalShard& b) { return a.device_id() < b.device_id(); });
  std::optional<Sharding> stored = tensor.stored_sharding();
  bool whole = !stored || stored->is_fully_replicated();
  Json all = Json::array();
  for (const LocalShard& shard : shards) {
    HostArray data = shard.padded_data();
    all.push_back({{"device", shard.device_id()},
                   {"shape", list_of(data.shape())},
                   {"indices", whole ? Json("all") : box_of(shard)},
                   {"replica_id", whole ? shard.device_id() : shard.replica_id()},
                   {"data", numbers_of(data)}});
  }
  return all;
}

Json json_of(const RuntimeCounters& counters) {
  const std::pair<const char*, std::uint64_t> named[] = {
      {"CreateDataHandles", counters.buffers_sent},
      {"OutboundData.bytes", counters.bytes_sent},
      {"InboundData.bytes", counters.bytes_read},
      {"UncachedCompile", counters.compiles},
      {"CachedCompile", counters.cache_hits + counters.retargets}};
  Json json = Json::object();
  for (const auto& [name, count] : named)
    if (count > 0) json[name] = count;
  return json;
}

}  // namespace meshard::conformance
