// mesh.json: the valid arguments of a mesh. We follow the variant that allows subsets of the
// devices.
#include "meshard/mesh/builders.h"
#include "meshard/mesh/dict_text.h"
#include "tools/conformance/difference.h"
#include "tools/conformance/nested_json.h"
#include "tools/conformance/txla/mesh_answers.h"

namespace meshard::conformance {
namespace mesh_cases {

Json described(const Mesh& mesh) {
  Json answer = {{"size", mesh.size()},
                 {"shape", named_shape(mesh)},
                 {"logical_mesh", nested(mesh.device_ids().to_vector(), mesh.shape())},
                 {"str", mesh_dict_text(mesh)}};
  if (axes_are_unnamed(mesh)) return answer;
  for (const MeshAxis& axis : mesh.axes())
    answer["axis_index"][axis.name] = mesh.axis_index(axis.name);
  return answer;
}

Json mesh_answer(const Json& input, const GoldenFile&) {
  Json answer = variant_answer([&] {
    auto shape = input.at("mesh_shape").get<std::vector<std::int64_t>>();
    Mesh mesh = mesh_on(input.at("num_devices"), mesh_axes(shape, names_of(input.at("axis_names"))),
                        input.at("device_ids").get<std::vector<std::int64_t>>());
    Json read = described(parse_mesh_dict(mesh_dict_text(mesh)).value());
    return read == described(mesh) ? read : Json{{"str", "is not read as it is printed"}};
  });
  return {{"expect", {{"pr9514", std::move(answer)}}}};
}

Verdict judge_mesh(const Json& test, const Json& answer) {
  return judge_variant(answer.at("expect").at("pr9514"), test.at("expect").at("pr9514"), 0);
}

}  // namespace mesh_cases

Suite mesh_suite() {
  using namespace mesh_cases;
  return {"mesh.json", mesh_answer, judge_mesh};
}

}  // namespace meshard::conformance
