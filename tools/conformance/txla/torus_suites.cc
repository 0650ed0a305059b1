// torus_assignment.json and hybrid_mesh.json: meshes over the directions of a torus, whole or
// split.
#include <functional>
#include <numeric>

#include "meshard/base/cat.h"
#include "meshard/topology/hybrid_mesh.h"
#include "tools/conformance/nested_json.h"
#include "tools/conformance/txla/mesh_answers.h"

namespace meshard::conformance {
namespace torus_cases {

constexpr std::pair<const char*, AxisSplit> kVariants[] = {{"split_axes", AxisSplit::kWhereNeeded},
                                                           {"no_split", AxisSplit::kNever}};

std::vector<std::int64_t> sizes_of(const Json& sizes) {
  return sizes.is_null() ? std::vector<std::int64_t>() : sizes.get<std::vector<std::int64_t>>();
}

Json for_both(const std::function<Json(AxisSplit)>& work) {
  Json answers;
  for (auto [variant, split] : kVariants)
    answers[variant] = variant_answer([&work, split = split] { return work(split); });
  return {{"expect", std::move(answers)}};
}

Verdict judge_both(const Json& test, const Json& answer, std::size_t devices) {
  Verdict verdict;
  for (auto [variant, split] : kVariants) {
    Verdict each =
        judge_variant(answer.at("expect").at(variant), test.at("expect").at(variant), devices);
    if (each.kind == Verdict::Kind::kFailed)
      return Verdict::failed(cat(variant, ".", each.difference));
    if (!each.rules.empty()) verdict.rules = each.rules;
  }
  return verdict;
}

Json torus_answer(const Json& input, const GoldenFile&) {
  auto physical = sizes_of(input.at("physical_shape")),
       logical = sizes_of(input.at("logical_shape"));
  std::vector<std::int64_t> places(static_cast<std::size_t>(
      std::accumulate(physical.begin(), physical.end(), std::int64_t{1}, std::multiplies<>())));
  std::iota(places.begin(), places.end(), std::int64_t{0});
  return for_both([&](AxisSplit split) -> Json {
    TorusAssignment assignment = assign_torus(physical, logical, split);
    Json taken = Json::array();
    for (const IntVector& each : assignment.taken)
      taken.push_back(std::vector<std::int64_t>(each.begin(), each.end()));
    return {{"assignment", taken},
            {"logical_mesh", nested(in_mesh_order(places, assignment, physical), logical)}};
  });
}

DeviceAttributes attributes_of(const Json& fields) {
  DeviceAttributes device;
  std::string name = fields.at("name");
  device.id = std::stoll(name.substr(name.find(':') + 1));
  auto coords = sizes_of(fields.at("coords"));
  device.coords.assign(coords.begin(), coords.end());
  device.core_on_chip = fields.at("core_on_chip");
  if (fields.contains("slice_index")) device.slice_index = fields.at("slice_index");
  return device;
}

Json hybrid_answer(const Json& input, const GoldenFile&) {
  return for_both([&](AxisSplit split) -> Json {
    std::vector<DeviceAttributes> devices;
    for (const Json& fields : input.at("device_attributes"))
      devices.push_back(attributes_of(fields));
    auto inner = sizes_of(input.at("ici_mesh_shape")), outer = sizes_of(input.at("dcn_mesh_shape"));
    Mesh mesh = hybrid_mesh(Topology(devices), inner, outer, names_of(input.at("axis_names")),
                            {.split = split});
    return {{"mesh_shape", std::vector<std::int64_t>(mesh.shape().begin(), mesh.shape().end())},
            {"shape", named_shape(mesh)},
            {"logical_mesh", nested(mesh.device_ids().to_vector(), mesh.shape())}};
  });
}

}  // namespace torus_cases

Suite torus_assignment_suite() {
  using namespace torus_cases;
  return {"torus_assignment.json", torus_answer,
          [](const Json& test, const Json& answer) { return judge_both(test, answer, 0); }};
}

Suite hybrid_mesh_suite() {
  using namespace torus_cases;
  return {"hybrid_mesh.json", hybrid_answer, [](const Json& test, const Json& answer) {
            return judge_both(test, answer, test.at("input").at("device_attributes").size());
          }};
}

}  // namespace meshard::conformance
