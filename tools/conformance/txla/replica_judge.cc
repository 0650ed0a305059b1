#include "tools/conformance/txla/replica_judge.h"

#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/rules.h"
#include "tools/conformance/txla/sharding_facts.h"

namespace meshard::conformance {
namespace {

/// Our answer with the recorded order of replicas, where the rule permits.
Json in_recorded_order(Json ours, const Json& recorded, std::initializer_list<const char*> texts) {
  for (const char* field : texts) {
    std::string text = ours.at(field);
    if (!mesh_order_replicas_in_text(text, recorded.at(field))) continue;
    ours[field] = recorded.at(field);
    if (ours.contains("op_sharding"))
      ours["op_sharding"] =
          op_sharding_fields(TileAssignment::parse(text).value().with_sorted_replicas());
  }
  if (ours.contains("shards") && mesh_order_replicas(ours.at("shards"), recorded.at("shards")))
    for (std::size_t i = 0; i < ours.at("shards").size(); ++i)
      ours["shards"][i]["replica_id"] = recorded.at("shards").at(i).at("replica_id");
  return ours;
}

}  // namespace

Verdict judge_in_replica_order(const Json& test, const Json& answer,
                               std::initializer_list<const char*> texts) {
  std::string difference = answer_difference(test, answer);
  if (difference.empty()) return {};
  if (!answer.contains("expect") || !test.contains("expect")) return Verdict::failed(difference);
  Json ordered = {{"expect", in_recorded_order(answer.at("expect"), test.at("expect"), texts)}};
  difference = answer_difference(test, ordered);
  return difference.empty() ? Verdict::by(Rule::kMeshOrderReplicas) : Verdict::failed(difference);
}

}  // namespace meshard::conformance
