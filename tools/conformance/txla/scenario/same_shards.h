// Two lists of shards of a value that lies alike, compared but for their data.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace meshard::conformance {

/// A value: what a comparison of shards found.
struct ShardsComparison {
  /// `shards[3].device: ours 4, recorded 5`; empty if there is none.
  std::string difference = {};
  /// They are alike but for the numbers of replicas, by the rule mesh-order-replicas.
  bool in_mesh_order = false;
};

/// @param ours, recorded lists of `{device, shape, indices, replica_id}` by ascending device; the
/// recorded one may leave `shape` out
ShardsComparison compare_shards(const nlohmann::json& ours, const nlohmann::json& recorded);

}  // namespace meshard::conformance
