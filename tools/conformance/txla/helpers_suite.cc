// helpers.json: torch_xla's helper functions, one by one.
#include <algorithm>
#include <map>

#include "meshard/base/cat.h"
#include "meshard/mesh/builders.h"
#include "meshard/sharding/op_sharding.h"
#include "tools/conformance/nested_json.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/mesh_answers.h"
#include "tools/conformance/txla/sharding_facts.h"

namespace meshard::conformance {
namespace helpers_cases {

/// The sharding type from the spec alone: the spec has indices, and its axes are not given.
Json type_of_spec(const Json& input) {
  std::vector<DimensionSpec> dimensions;
  for (const Json& entry : input.at("partition_spec"))
    dimensions.push_back(entry.is_null() ? DimensionSpec(none) : DimensionSpec("split"));
  ShardingType type =
      sharding_type(PartitionSpec(dimensions), input.at("num_devices").get<std::int64_t>());
  return {{"sharding_type", to_string(type)}};
}

Json translated(const Json& input) {
  return {{"translated_spec", translated_spec(input.at("partition_spec"), mesh_of(input))}};
}

Json tile_assignment_of(const Json& input) { return tile_array_facts(sharding_of(input)); }

/// The groups of a given tile assignment. Its dimensions are the axes, which the dimensions that
/// are not replicated use in order.
Json group_assignment_of(const Json& input) {
  if (input.at("sharding_type") != "PARTIAL")
    return {{"group_assignment", Json::array()}, {"replication_groups", Json::array()}};
  FlatArray tiles = flat(input.at("tile_assignment"));
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < tiles.shape.size(); ++i)
    axes.push_back({cat("axis_", i), tiles.shape[i]});
  std::vector<DimensionSpec> dimensions(input.at("tensor_rank").get<std::size_t>());
  const Json& replicated = input.at("replicate_dims");
  std::size_t next = 0;
  for (std::size_t d = 0; d < dimensions.size(); ++d)
    if (std::find(replicated.begin(), replicated.end(), d) == replicated.end())
      dimensions[d] = DimensionSpec(cat("axis_", next++));
  return group_facts(Sharding(Mesh(axes, tiles.data), PartitionSpec(dimensions)));
}

Json one_dimensional_mesh(const Json& input) {
  const Json& name = input.at("axis_name");
  std::int64_t size = input.at("num_devices");
  Mesh mesh = name.is_null() ? mesh_1d(size) : mesh_1d(size, name.get<std::string>());
  return {{"mesh_shape", std::vector<std::int64_t>(mesh.shape().begin(), mesh.shape().end())},
          {"axis_names", name.is_null() ? Json() : Json{name}},
          {"logical_mesh", mesh.device_ids().to_vector()},
          {"shape", named_shape(mesh)}};
}

using HelperFunction = Json (*)(const Json& input);

Json answer_to(const Json& input, const GoldenFile&) {
  static const std::map<std::string, HelperFunction> kFunctions = {
      {"get_sharding_type", type_of_spec},
      {"translate_named_partition_spec", translated},
      {"get_tile_assignment", tile_assignment_of},
      {"get_group_assignment", group_assignment_of},
      {"get_1d_mesh", one_dimensional_mesh}};
  auto found = kFunctions.find(input.at("fn").get<std::string>());
  if (found == kFunctions.end()) return {};
  return answer_or_category([&] { return found->second(input); });
}

Verdict judge_case(const Json& test, const Json& answer) {
  std::string difference = answer_difference(test, answer);
  return difference.empty() ? Verdict{} : Verdict::failed(difference);
}

}  // namespace helpers_cases

Suite helpers_suite() {
  using namespace helpers_cases;
  return {"helpers.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
