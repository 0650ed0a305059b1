#include "tools/conformance/txla/scenario/same_shards.h"

#include "meshard/base/cat.h"
#include "tools/conformance/txla/rules.h"

namespace meshard::conformance {

ShardsComparison compare_shards(const nlohmann::json& ours, const nlohmann::json& recorded) {
  if (ours.size() != recorded.size())
    return {cat("ours has ", ours.size(), " shards, recorded ", recorded.size())};
  bool same_replicas = true;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    for (const char* field : {"device", "shape", "indices"})
      if (recorded[i].contains(field) && ours[i].at(field) != recorded[i].at(field))
        return {cat("shards[", i, "].", field, ": ours ", ours[i].at(field).dump(), ", recorded ",
                    recorded[i].at(field).dump())};
    same_replicas &= ours[i].at("replica_id") == recorded[i].at("replica_id");
  }
  if (same_replicas) return {};
  if (mesh_order_replicas(ours, recorded)) return {{}, true};
  return {"the replicas are numbered differently"};
}

}  // namespace meshard::conformance
