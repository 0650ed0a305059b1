// from_shards.json: a value assembled from one host array for each device.
#include "meshard/meshard.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/sharding_text.h"

namespace meshard::conformance {
namespace from_shards_cases {

/// Shard i holds 1, 2, ..., plus 100 i.
std::vector<HostArray> shards_of(const Json& input) {
  std::vector<HostArray> shards;
  Shape shape = shape_of(input.at("shard_shape"));
  for (int i = 0; i < input.at("num_shards").get<int>(); ++i)
    shards.push_back(host_array_of({{"iota", 1 + 100 * i}}, shape, DType::f32));
  return shards;
}

Json facts_of(const Json& input) {
  Mesh mesh = mesh_of(input);
  std::optional<Shape> whole;
  if (!input.at("global_shape").is_null()) whole = shape_of(input.at("global_shape"));
  PartitionSpec spec = spec_of(input.at("partition_spec"), mesh);
  ShardedTensor made = ShardedTensor::from_shards(shards_of(input), mesh, spec, whole);
  HostArray values = made.global().to_host();
  return {{"global_shape", list_of(values.shape())},
          {"hlo_sharding", hlo_text(made.sharding())},
          {"values", numbers_of(values)}};
}

Json answer_to(const Json& input, const GoldenFile&) {
  if (input.at("fn") != "global_tensor_from_shards") return {};
  return answer_or_category([&] { return facts_of(input); });
}

Verdict judge_case(const Json& test, const Json& answer) {
  std::string difference = answer_difference(test, answer);
  return difference.empty() ? Verdict() : Verdict::failed(difference);
}

int devices_for(const Json& input) { return input.at("num_devices"); }

}  // namespace from_shards_cases

Suite from_shards_suite() {
  using namespace from_shards_cases;
  return {"from_shards.json", answer_to, judge_case, devices_for};
}

}  // namespace meshard::conformance
