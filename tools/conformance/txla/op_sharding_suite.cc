// op_sharding.json: from a mesh and a partition spec to the compiler's OpSharding.
#include "meshard/sharding/op_sharding.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/replica_judge.h"
#include "tools/conformance/txla/sharding_facts.h"

namespace meshard::conformance {
namespace op_sharding_cases {

Json facts_of(const Json& input) {
  Sharding sharding = sharding_of(input);
  TileAssignment tiles = listed_tiles(sharding);
  Json facts = tile_facts(sharding);
  if (sharding.rank() == 0) {  // the reference has no tile assignment for a scalar
    facts["tile_assignment"] = Json::array();
    facts.erase("tile_assignment_shape");
  }
  facts["translated_spec"] = translated_spec(input.at("partition_spec"), mesh_of(input));
  facts["hlo_sharding"] = tiles.to_string();
  facts["canonical_type"] = to_string(canonical_type(sharding));
  facts["op_sharding"] = op_sharding_fields(tiles);
  return facts;
}

Json answer_to(const Json& input, const GoldenFile&) {
  return answer_or_category([&] { return facts_of(input); });
}

Verdict judge_case(const Json& test, const Json& answer) {
  return judge_in_replica_order(test, answer, {"hlo_sharding"});
}

}  // namespace op_sharding_cases

Suite op_sharding_suite() {
  using namespace op_sharding_cases;
  return {"op_sharding.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
