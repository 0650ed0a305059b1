#include "tools/conformance/txla/mesh_answers.h"

#include "meshard/mesh/builders.h"
#include "tools/conformance/difference.h"
#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/rules.h"

namespace meshard::conformance {

std::optional<std::vector<std::string>> names_of(const Json& axis_names) {
  if (axis_names.is_null()) return std::nullopt;
  return axis_names.get<std::vector<std::string>>();
}

Json named_shape(const Mesh& mesh) {
  Json shape = Json::array();
  bool unnamed = axes_are_unnamed(mesh);
  for (std::size_t i = 0; i < mesh.rank(); ++i) {
    Json name = unnamed ? Json(i) : Json(mesh.axes()[i].name);
    shape.push_back(Json::array({std::move(name), mesh.axes()[i].size}));
  }
  return shape;
}

Json variant_answer(const std::function<Json()>& work) {
  try {
    Json answer = work();
    answer["ok"] = true;
    return answer;
  } catch (const Error& error) {
    return {{"ok", false},
            {"error", {{"category", error_category(error)}, {"message", error.message()}}}};
  }
}

Verdict judge_variant(const Json& ours, const Json& recorded, std::size_t devices) {
  if (recorded.at("ok")) {
    std::string difference = first_difference(ours, recorded);
    return difference.empty() ? Verdict{} : Verdict::failed(std::move(difference));
  }
  if (ours.at("ok")) {
    if (devices > 0 &&
        two_core_and_single_slice_meshes(recorded.at("error"), ours.at("logical_mesh"), devices))
      return Verdict::by(Rule::kTwoCoreAndSingleSliceMeshes);
    return Verdict::failed(first_difference(ours, recorded));
  }
  const Json& category = recorded.at("error").at("category");
  if (ours.at("error").at("category") == category) return {};
  return Verdict::failed(first_difference(ours.at("error"), {{"category", category}}));
}

}  // namespace meshard::conformance
