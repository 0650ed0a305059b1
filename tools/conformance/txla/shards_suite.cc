// shards.json: an array on the devices of a mesh, shard by shard.
#include "meshard/sharding/op_sharding.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/placed_shards.h"
#include "tools/conformance/txla/replica_judge.h"
#include "tools/conformance/txla/sharding_facts.h"

namespace meshard::conformance {
namespace shards_cases {

Json facts_of(const Json& input) {
  Sharding sharding = sharding_of(input);
  IntVector shard = sharding.shard_shape(input.at("global_shape").get<std::vector<std::int64_t>>());
  return {{"hlo_sharding", listed_tiles(sharding).to_string()},
          {"canonical_type", to_string(canonical_type(sharding))},
          {"shard_shape", std::vector<std::int64_t>(shard.begin(), shard.end())},
          {"shards", shards_on_devices(placed(input, sharding))}};
}

Json answer_to(const Json& input, const GoldenFile&) {
  return answer_or_category([&] { return facts_of(input); });
}

int devices_for(const Json& input) { return input.at("num_devices"); }

Verdict judge_case(const Json& test, const Json& answer) {
  return judge_in_replica_order(test, answer, {"hlo_sharding"});
}

}  // namespace shards_cases

Suite shards_suite() {
  using namespace shards_cases;
  return {"shards.json", answer_to, judge_case, devices_for};
}

}  // namespace meshard::conformance
