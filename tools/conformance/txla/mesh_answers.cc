#include "tools/conformance/txla/mesh_answers.h"

#include <set>

#include "meshard/mesh/builders.h"
#include "tools/conformance/difference.h"

namespace meshard::conformance {
namespace {

/// What our messages say where the reference has a category. The first that fits counts.
constexpr std::pair<std::string_view, const char*> kCategories[] = {
    {" axis names (", "axis_names_length_mismatch"},
    {"is used twice", "axis_names_not_unique"},
    {"are listed, there are", "device_count_exceeds_global"},
    {"there is no device ", "device_id_not_addressable"},
    {"is listed twice", "device_ids_not_unique"},
    {" inner sizes (", "ici_dcn_rank_mismatch"},
    {"the devices have no slice index", "dcn_shape_on_single_slice"},
    {"and no outer shape", "dcn_shape_required"},
    {"[topology] the outer shape", "slice_count_mismatch"},
    {"[topology] a mesh of", "device_count_mismatch"},
    {"allow AxisSplit::kWhereNeeded", "no_axis_assignment"},
    {"without an axis", "spec_invalid_axes"},
    {"[torus] a mesh of", "physical_logical_size_mismatch"},
    {" device ids for ", "mesh_size_mismatch"},
    {"has size 0", "mesh_size_mismatch"},
};

void flatten_into(const Json& value, std::vector<std::int64_t>& flat) {
  if (!value.is_array()) return flat.push_back(value);
  for (const Json& each : value) flatten_into(each, flat);
}

}  // namespace

std::optional<std::vector<std::string>> names_of(const Json& axis_names) {
  if (axis_names.is_null()) return std::nullopt;
  return axis_names.get<std::vector<std::string>>();
}

Json nested(const std::vector<std::int64_t>& values, IntView shape) {
  Json level = values;
  for (std::size_t k = shape.size(); k-- > 1;) {
    Json next = Json::array();
    auto size = static_cast<std::size_t>(shape[k]);
    for (std::size_t i = 0; i < level.size(); i += size)
      next.push_back(Json(Json::array_t(level.begin() + static_cast<std::ptrdiff_t>(i),
                                        level.begin() + static_cast<std::ptrdiff_t>(i + size))));
    level = std::move(next);
  }
  return shape.empty() ? level.at(0) : level;
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

Json answer_or_category(const std::function<Json()>& work) {
  try {
    Json answer = work();
    answer["ok"] = true;
    return answer;
  } catch (const Error& error) {
    for (const auto& [words, category] : kCategories)
      if (error.message().find(words) != std::string::npos)
        return {{"ok", false}, {"error", {{"category", category}}}};
    return {{"ok", false}, {"error", {{"category", "unclassified"}, {"message", error.what()}}}};
  }
}

bool two_core_and_single_slice_meshes(const Json& recorded_error, const Json& our_mesh,
                                      std::size_t devices) {
  static const std::set<std::string> refusals = {
      "dcn_shape_required", "physical_logical_size_mismatch", "no_axis_assignment"};
  if (!refusals.contains(recorded_error.at("category"))) return false;
  std::vector<std::int64_t> ids;
  flatten_into(our_mesh.at("logical_mesh"), ids);
  return ids.size() == devices && std::set<std::int64_t>(ids.begin(), ids.end()).size() == devices;
}

Verdict judge_variant(const Json& ours, const Json& recorded, std::size_t devices) {
  if (recorded.at("ok")) {
    std::string difference = first_difference(ours, recorded);
    return difference.empty() ? Verdict{} : Verdict::failed(std::move(difference));
  }
  if (ours.at("ok")) {
    if (devices > 0 && two_core_and_single_slice_meshes(recorded.at("error"), ours, devices))
      return Verdict::by(Rule::kTwoCoreAndSingleSliceMeshes);
    return Verdict::failed(first_difference(ours, recorded));
  }
  const Json& category = recorded.at("error").at("category");
  if (ours.at("error").at("category") == category) return {};
  return Verdict::failed(first_difference(ours.at("error"), {{"category", category}}));
}

}  // namespace meshard::conformance
