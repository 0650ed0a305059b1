// Operations that make a root.
#include <algorithm>

#include "meshard/mesh/submeshes.h"
#include "tools/conformance/devicemesh/golden_error.h"
#include "tools/conformance/devicemesh/mesh_ops/facts.h"
#include "tools/conformance/devicemesh/mesh_ops/operations.h"
#include "tools/conformance/nested_json.h"

namespace meshard::conformance {
namespace {

bool has_names(const Json& op) { return !op.at("names").is_null() && !op.at("names").empty(); }

/// Names and sizes of axes; placeholder names if there are none.
std::vector<MeshAxis> named_axes(const std::vector<std::int64_t>& shape, const Json& op,
                                 const GoldenError& wrong_count) {
  bool named = has_names(op);
  if (named && op.at("names").size() != shape.size()) throw wrong_count;
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    axes.push_back(
        {named ? op.at("names")[i].get<std::string>() : "_" + std::to_string(i), shape[i]});
  return axes;
}

/// Our meshes have no world. The program's world is a mesh that must contain all devices of a new
/// root.
void check_world(const Mesh& mesh, std::int64_t world_size) {
  Overlap found = overlap(mesh, Mesh({{"world", world_size}}));
  if (found == Overlap::kFirstInSecond || found == Overlap::kSame) return;
  if (mesh.size() > world_size) throw GoldenError("RuntimeError", "mesh_bigger_than_world");
  throw GoldenError("ValueError", "rank_out_of_world");
}

MeshEntry init(const Json& op, const ProgramState& state) {
  std::vector<std::int64_t> shape = op.at("shape");
  std::string device = op.value("device", "cpu");
  if (device.find(':') != std::string::npos)
    throw GoldenError("RuntimeError", "init_device_with_index");
  GoldenError wrong_count("RuntimeError", "init_count_mismatch");
  MeshEntry entry{Mesh(named_axes(shape, op, wrong_count))};
  entry.named = has_names(op);
  entry.device = device;
  check_world(entry.mesh, state.world_size);
  return entry;
}

MeshEntry from_ranks(const Json& op, const ProgramState& state) {
  FlatArray ranks = flat(op.at("ranks"));
  GoldenError wrong_count("IndexError", "index_out_of_range");
  MeshEntry entry{Mesh(named_axes(ranks.shape, op, wrong_count), ranks.data)};
  entry.named = has_names(op);
  entry.has_groups = op.value("init_groups", true);
  entry.preserves_order = op.value("preserve_rank_order", false);
  check_world(entry.mesh, state.world_size);
  return entry;
}

/// The ranks of the group of the first observer that is in one, in the order in which the reference
/// lists them.
std::vector<std::int64_t> group_ranks(const Json& group, const ProgramState& state) {
  const MeshEntry& entry = entry_of(group[0], state);
  Dimension dimension = dimension_of(entry, group[1]);
  for (std::int64_t rank : state.observers)
    if (std::optional<DeviceGroup> found = dimension.mesh.group({dimension.axis}, rank))
      return ids_of(entry.preserves_order ? found->ranks() : found->ranks().sorted());
  throw GoldenError("ValueError", "from_group_empty");
}

/// A root made from groups. Ours is made from their ranks, because our groups belong to a root.
MeshEntry from_group(const Json& op, const ProgramState& state) {
  const Json& groups = op.at("groups");
  const Json& names = op.at("names");
  Json ranks = op.at("ranks");
  if (groups.empty()) throw GoldenError("ValueError", "from_group_empty");
  for (const Json& group : groups) dimension_of(entry_of(group[0], state), group[1]);
  if (op.value("list", true)) {
    if (ranks.is_null()) throw GoldenError("ValueError", "from_group_mesh_required");
    if (names.is_null()) throw GoldenError("ValueError", "from_group_names_required");
    if (flat(ranks).shape.size() != groups.size())
      throw GoldenError("ValueError", "from_group_ndim_mismatch");
  } else {
    Json own = group_ranks(groups[0], state);
    if (!ranks.is_null() && ranks != own)
      throw GoldenError("ValueError", "from_group_mesh_mismatch");
    ranks = own;
  }
  return from_ranks({{"ranks", ranks}, {"names", names}}, state);
}

}  // namespace

MeshEntry construct(const Json& op, const ProgramState& state) {
  std::string kind = op.at("op");
  if (kind == "init") return init(op, state);
  if (kind == "mesh") return from_ranks(op, state);
  return from_group(op, state);
}

}  // namespace meshard::conformance
