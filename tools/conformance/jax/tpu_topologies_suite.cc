// tpu_topologies.json: the devices of TPUs, computed without a plugin.
#include "meshard/topology/tpu_topology.h"
#include "tools/conformance/difference.h"
#include "tools/conformance/jax/topology_rows.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {
namespace tpu_topologies_cases {

Json topology_answer(const Json& input, const GoldenFile&) {
  Result<Topology> topology = tpu_topology(input.at("id").get<std::string>());
  if (!topology) return {{"error", topology.error().what()}};
  return {{"device_kind", topology->kind()},
          {"num_devices", topology->size()},
          {"devices", rows_of(*topology)}};
}

Verdict judge_topology(const Json& test, const Json& answer) {
  Json recorded;
  for (const char* field : {"device_kind", "num_devices", "devices"})
    recorded[field] = test.at(field);
  std::string difference = first_difference(answer, recorded);
  return difference.empty() ? Verdict{} : Verdict::failed(std::move(difference));
}

}  // namespace tpu_topologies_cases

Suite tpu_topologies_suite() {
  using namespace tpu_topologies_cases;
  return {"tpu_topologies.json", topology_answer, judge_topology};
}

}  // namespace meshard::conformance
