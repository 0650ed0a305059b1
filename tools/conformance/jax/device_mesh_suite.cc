// device_mesh.json: the device orders of JAX's mesh builders on TPUs.
#include <fstream>
#include <map>
#include <set>

#include "meshard/topology/hybrid_mesh.h"
#include "tools/conformance/difference.h"
#include "tools/conformance/jax/topology_rows.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {
namespace device_mesh_cases {

/// The topologies of the file tpu_topologies.json in the same folder, or the one above.
const Topology& recorded_topology(const GoldenFile& file, const std::string& name) {
  static std::map<std::string, Topology> known;
  if (auto found = known.find(name); found != known.end()) return found->second;
  std::filesystem::path folder = file.path.parent_path();
  if (!std::filesystem::exists(folder / "tpu_topologies.json")) folder = folder.parent_path();
  std::ifstream stream(folder / "tpu_topologies.json");
  Json topologies = Json::parse(stream).at("topologies");
  for (const auto& [each, fields] : topologies.items())
    known.emplace(each, topology_of_rows(fields));
  return known.at(name);
}

/// The Python exception that corresponds to our error code.
const char* exception_for(ErrorCode code) {
  if (code == ErrorCode::kUnimplemented) return "NotImplementedError";
  return code == ErrorCode::kFailedPrecondition ? "AssertionError" : "ValueError";
}

Mesh built(const Json& input, const Topology& topology) {
  HybridOptions options;
  options.split =
      input.at("allow_split_physical_axes") ? AxisSplit::kWhereNeeded : AxisSplit::kNever;
  auto shape = input.at("mesh_shape").get<std::vector<std::int64_t>>();
  if (input.at("fn") == "create_device_mesh") {
    options.contiguous_processes = input.at("contiguous_submeshes");
    return torus_mesh(topology, shape, std::nullopt, options);
  }
  options.granule = input.at("process_is_granule") ? Granule::kProcess : Granule::kSlice;
  return hybrid_mesh(topology, shape, input.at("dcn_mesh_shape").get<std::vector<std::int64_t>>(),
                     std::nullopt, options);
}

Json device_mesh_answer(const Json& input, const GoldenFile& file) {
  const std::string& fn = input.at("fn").get_ref<const std::string&>();
  if (fn != "create_device_mesh" && fn != "create_hybrid_device_mesh") return {};
  const Topology& topology = recorded_topology(file, input.at("topology"));
  try {
    return {{"ids", built(input, topology).device_ids().to_vector()}, {"devices", topology.size()}};
  } catch (const Error& error) {
    return {{"error", exception_for(error.code())}};
  }
}

/// two-core-and-single-slice-meshes: JAX rejects chips with two devices (except TPU v2, v3, 7x)
/// with an assertion; ours is a mesh with every device once.
bool two_core_mesh(const Json& recorded_error, const Json& answer) {
  auto ids = answer.at("ids").get<std::set<std::int64_t>>();
  return recorded_error == "AssertionError" && ids.size() == answer.at("ids").size() &&
         ids.size() == answer.at("devices");
}

Verdict judge_device_mesh(const Json& test, const Json& answer) {
  if (test.contains("error") && answer.contains("ids") && two_core_mesh(test.at("error"), answer))
    return Verdict::by(Rule::kTwoCoreAndSingleSliceMeshes);
  const char* field = test.contains("error") ? "error" : "ids";
  if (answer.contains(field) && answer.at(field) == test.at(field)) return {};
  return Verdict::failed(first_difference(answer, {{field, test.at(field)}}));
}

}  // namespace device_mesh_cases

Suite device_mesh_suite() {
  using namespace device_mesh_cases;
  return {"device_mesh.json", device_mesh_answer, judge_device_mesh};
}

}  // namespace meshard::conformance
