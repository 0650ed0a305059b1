// op_sharding_v2_iota.json: the same in XLA's compact form, for meshes of devices 0, 1, 2, ...
#include "meshard/sharding/op_sharding.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/error_category.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/sharding_facts.h"

namespace meshard::conformance {
namespace op_sharding_v2_iota_cases {

Json facts_of(const Json& input) {
  Mesh mesh = mesh_of(input);
  PartitionSpec spec = spec_of(input.at("partition_spec"), mesh);
  Sharding sharding(mesh, spec);
  TileAssignment by_axis = axis_tile_assignment(sharding), tiles = tile_assignment(sharding);
  std::string listed = listed_tiles(sharding).to_string();
  bool tiled = tiles.kind == TileKind::kTiled;
  Sharding from_list =
      sharding_from_tiles(mesh, TileAssignment::parse(listed).value(), sharding.rank()).value();
  return {{"sharding_type", to_string(sharding_type(sharding_of(input).spec(), mesh.size()))},
          {"tile_assignment_dims", by_axis.dims},
          {"reshape_dims", by_axis.reshape_dims},
          {"transpose_perm", by_axis.transpose_perm},
          {"replicate_on_last_tile_dim", by_axis.replicate_on_last_tile_dim},
          {"hlo_sharding_v2", tiles.to_string()},
          {"tile_assignment_devices", tiled ? Json(tiles.device_list()) : Json()},
          {"same_placement_as_v1", from_list.same_placement(sharding, sharding.rank())},
          {"hlo_sharding_v1", listed}};
}

Json answer_to(const Json& input, const GoldenFile&) {
  return answer_or_category([&] { return facts_of(input); });
}

Verdict judge_case(const Json& test, const Json& answer) {
  std::string difference = answer_difference(test, answer);
  return difference.empty() ? Verdict{} : Verdict::failed(difference);
}

}  // namespace op_sharding_v2_iota_cases

Suite op_sharding_v2_iota_suite() {
  using namespace op_sharding_v2_iota_cases;
  return {"op_sharding_v2_iota.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
