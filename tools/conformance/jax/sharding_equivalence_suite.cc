// sharding_equivalence.json: whether two shardings are equivalent.
#include "meshard/sharding/sharding.h"
#include "tools/conformance/difference.h"
#include "tools/conformance/jax/inputs.h"

namespace meshard::conformance {
namespace sharding_equivalence_cases {

Json answer_to(const Json& input, const GoldenFile& file) {
  Sharding a(jax_mesh(input.at("mesh_a"), file), jax_spec(input.at("spec_a")));
  Sharding b(jax_mesh(input.at("mesh_b"), file), jax_spec(input.at("spec_b")));
  return {{"equivalent", a.is_equivalent_to(b, input.at("rank").get<std::size_t>())},
          {"equal", a == b}};
}

Verdict judge_case(const Json& test, const Json& answer) {
  Json recorded = {{"equivalent", test.at("equivalent")}, {"equal", test.at("equal")}};
  std::string difference = first_difference(answer, recorded);
  return difference.empty() ? Verdict{} : Verdict::failed(difference);
}

}  // namespace sharding_equivalence_cases

Suite sharding_equivalence_suite() {
  using namespace sharding_equivalence_cases;
  return {"sharding_equivalence.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
