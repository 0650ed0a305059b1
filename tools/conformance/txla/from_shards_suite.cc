// from_shards.json: a value assembled from one host array for each device.
#include "meshard/meshard.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/scenario/numbers.h"
#include "tools/conformance/txla/sharding_text.h"

namespace meshard::conformance {
namespace {

/// Shard i holds 1, 2, ... with 100 i added.
std::vector<HostArray> shards_of(const Json& input) {
  std::vector<HostArray> shards;
  Shape shape = shape_of(input.at("shard_shape"));
  for (int i = 0; i < input.at("num_shards").get<int>(); ++i)
    shards.push_back(host_array_of({{"iota", 1 + 100 * i}}, shape, DType::f32));
  return shards;
}

Json answer_to(const Json& input, const GoldenFile&) {
  if (input.at("fn") != "global_tensor_from_shards") return {};
  Mesh mesh = mesh_of(input);
  std::optional<Shape> whole;
  if (!input.at("global_shape").is_null()) whole = shape_of(input.at("global_shape"));
  try {
    ShardedTensor made = ShardedTensor::from_shards(
        shards_of(input), mesh, spec_of(input.at("partition_spec"), mesh), whole);
    HostArray values = made.global().to_host();
    return {
        {"expect",
         {{"global_shape", std::vector<std::int64_t>(values.shape().begin(), values.shape().end())},
          {"hlo_sharding", hlo_text(made.sharding())},
          {"values", numbers_of(values)}}}};
  } catch (const Error& error) {
    return {{"expect_error", {{"category", error_category(error)}, {"message", error.message()}}}};
  }
}

Verdict judge_case(const Json& test, const Json& answer) {
  if (!test.contains("expect")) {
    const Json& category = test.at("expect_error").at("category");
    bool same = answer.contains("expect_error") &&
                (category == "other" || answer.at("expect_error").at("category") == category);
    return same ? Verdict()
                : Verdict::failed(cat("ours ", answer.dump(), ", recorded ", category.dump()));
  }
  if (!answer.contains("expect")) return Verdict::failed("ours " + answer.dump());
  const Json& ours = answer.at("expect");
  const Json& recorded = test.at("expect");
  for (const char* field : {"global_shape", "hlo_sharding"})
    if (ours.at(field) != recorded.at(field))
      return Verdict::failed(
          cat(field, ": ours ", ours.at(field).dump(), ", recorded ", recorded.at(field).dump()));
  std::string difference =
      first_difference_of(doubles_of(ours.at("values")), doubles_of(recorded.at("values")));
  return difference.empty() ? Verdict() : Verdict::failed("values" + difference);
}

}  // namespace

Suite from_shards_suite() {
  return {"from_shards.json", answer_to, judge_case,
          [](const Json& input) { return input.at("num_devices").get<int>(); }};
}

}  // namespace meshard::conformance
