// submesh_placement.json: an array on some of the devices.
#include <algorithm>

#include "meshard/runtime/counters.h"
#include "meshard/sharding/op_sharding.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/placed_shards.h"
#include "tools/conformance/txla/replica_judge.h"
#include "tools/conformance/txla/sharding_facts.h"

namespace meshard::conformance {
namespace submesh_placement_cases {

using Numbers = std::vector<std::int64_t>;

/// The rank of each number in ascending order, which is how the reference numbers partitions.
Numbers ranks_of(const Numbers& numbers) {
  Numbers sorted = numbers, ranks;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t number : numbers)
    ranks.push_back(std::lower_bound(sorted.begin(), sorted.end(), number) - sorted.begin());
  return ranks;
}

/// Whether the ids minus the smallest one are 0, 1, ... in some order.
bool is_contiguous(const Numbers& ids) {
  auto [least, most] = std::minmax_element(ids.begin(), ids.end());
  return *most - *least + 1 == static_cast<std::int64_t>(ids.size());
}

Json facts_of(const Json& input) {
  Sharding sharding = sharding_of(input);
  Numbers ids = sharding.mesh().device_ids().to_vector(), partitions = ranks_of(ids);
  Json by_partition = input;
  by_partition["device_ids"] = partitions;
  RuntimeCounters before = runtime_counters();
  Tensor tensor = placed(input, sharding);
  RuntimeCounters sent = runtime_counters() - before;
  Json shards = shards_on_devices(tensor);
  Json assignment = Json::array();
  for (Json& shard : shards) {
    shard["partition"] = assignment.size();
    assignment.push_back(shard.at("device"));
  }
  return {{"num_partitions", ids.size()},
          {"device_assignment", assignment},
          {"denormalized_device_ids", ids},
          {"normalized_device_ids", partitions},
          {"min_subtraction_is_permutation", is_contiguous(ids)},
          {"hlo_sharding_normalized", listed_tiles(sharding_of(by_partition)).to_string()},
          {"hlo_sharding_denormalized", listed_tiles(sharding).to_string()},
          {"type", to_string(canonical_type(sharding))},
          {"shards", shards},
          {"upload", {{"handles", sent.buffers_sent}, {"bytes", sent.bytes_sent}}}};
}

Json answer_to(const Json& input, const GoldenFile&) {
  return answer_or_category([&] { return facts_of(input); });
}

int devices_for(const Json& input) { return input.at("num_devices"); }

Verdict judge_case(const Json& test, const Json& answer) {
  return judge_in_replica_order(test, answer,
                                {"hlo_sharding_normalized", "hlo_sharding_denormalized"});
}

}  // namespace submesh_placement_cases

Suite submesh_placement_suite() {
  using namespace submesh_placement_cases;
  return {"submesh_placement.json", answer_to, judge_case, devices_for};
}

}  // namespace meshard::conformance
