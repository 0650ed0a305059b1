// Compares two lists of shards of equally placed values, except for their data.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace meshard::conformance {

/// The result of a comparison of shards; a value type.
struct ShardsComparison {
  /// `shards[3].device: ours 4, recorded 5`; empty if there is no difference.
  std::string difference = {};
  /// They differ only in replica numbers, which the rule mesh-order-replicas allows.
  bool in_mesh_order = false;
};

/// @param ours, recorded lists of `{device, shape, indices, replica_id}` by ascending device; the
/// recorded list may omit `shape`
ShardsComparison compare_shards(const nlohmann::json& ours, const nlohmann::json& recorded);

}  // namespace meshard::conformance
