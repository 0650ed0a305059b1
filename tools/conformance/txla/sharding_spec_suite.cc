// sharding_spec.json: a mesh and a spec for tensors that do not exist yet.
#include "meshard/sharding/op_sharding.h"
#include "meshard/sharding/sharding_spec.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/rules.h"
#include "tools/conformance/txla/sharding_facts.h"

namespace meshard::conformance {
namespace sharding_spec_cases {

ShardingSpec spec_in(const Json& input) {
  Mesh mesh = mesh_of(input);
  PartitionSpec spec = spec_of(input.at("partition_spec"), mesh);
  return input.at("minibatch") == true ? ShardingSpec::minibatch(mesh, spec)
                                       : ShardingSpec(mesh, spec);
}

Json facts_of(const Json& input) {
  ShardingSpec spec = spec_in(input);
  Sharding sharding = sharding_of(input);
  Json facts = tile_facts(sharding);
  facts.erase("tile_assignment_shape");
  facts["get_op_sharding_type"] = facts.at("sharding_type");
  facts["can_apply"] = facts["xla_spec_is_null"] = Json::array();
  for (const Json& rank : input.at("tensor_ranks")) {
    bool fits = spec.can_apply(rank.get<std::size_t>());
    facts["can_apply"].push_back(fits);
    facts["xla_spec_is_null"].push_back(!fits);
  }
  return facts;
}

/// The reference detects wrong axes only when it transposes by them.
std::string category_in_a_spec(const Error& error) {
  std::string category = error_category(error);
  bool axes = category == "spec_axis_out_of_range" || category == "spec_axis_repeated";
  return axes ? "spec_invalid_axes" : category;
}

Json answer_to(const Json& input, const GoldenFile&) {
  if (input.at("fn") != "sharding_spec") return {};
  return answer_or_category([&] {
    try {
      return facts_of(input);
    } catch (const Error& error) {
      throw ReferenceError(category_in_a_spec(error));
    }
  });
}

/// Our facts, with the reference's answers where a spec is too short for it.
Json as_the_reference_reads_it(Json ours, const Json& recorded, const Json& input) {
  const Json& ranks = input.at("tensor_ranks");
  std::size_t entries = input.at("partition_spec").size();
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (short_spec(recorded.at("can_apply")[i], ours.at("can_apply")[i], entries, ranks[i])) {
      ours["can_apply"][i] = recorded.at("can_apply")[i];
      ours["xla_spec_is_null"][i] = true;
    }
  if (short_spec(recorded, ours))
    for (const char* field : {"sharding_type", "group_assignment", "replication_groups"})
      ours[field] = recorded.at(field);
  return ours;
}

Verdict judge_case(const Json& test, const Json& answer) {
  std::string difference = answer_difference(test, answer);
  if (difference.empty()) return {};
  if (!answer.contains("expect") || !test.contains("expect")) return Verdict::failed(difference);
  Json read = {{"expect", as_the_reference_reads_it(answer.at("expect"), test.at("expect"),
                                                    test.at("input"))}};
  difference = answer_difference(test, read);
  return difference.empty() ? Verdict::by(Rule::kShortSpec) : Verdict::failed(difference);
}

}  // namespace sharding_spec_cases

Suite sharding_spec_suite() {
  using namespace sharding_spec_cases;
  return {"sharding_spec.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
