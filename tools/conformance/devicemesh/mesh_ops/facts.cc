#include "tools/conformance/devicemesh/mesh_ops/facts.h"

#include "meshard/base/cat.h"
#include "tools/conformance/devicemesh/layout_adapter.h"
#include "tools/conformance/nested_json.h"

namespace meshard::conformance {
namespace {

template <class List>
std::vector<std::int64_t> integers(const List& list) {
  return {list.begin(), list.end()};
}

/// All groups along each axis, row by row.
Json groups_by_dim(const Mesh& mesh) {
  Json dims = Json::array();
  for (const MeshAxis& axis : mesh.axes()) dims.push_back(mesh.groups({axis.name}).to_vectors());
  return dims;
}

/// The number of groups that no earlier handle has. The reference counts communicators, which we do
/// not have.
std::int64_t new_groups(const MeshEntry& entry, const Handles& handles) {
  auto is_known = [&](const DeviceGroups& groups) {
    for (const Handles::Handle& handle : handles.all())
      for (const MeshAxis& axis : handle.entry.mesh.axes())
        if (handle.entry.mesh.groups({axis.name}).is_same_object(groups)) return true;
    return false;
  };
  std::int64_t count = 0;
  for (const MeshAxis& axis : entry.mesh.axes())
    if (DeviceGroups groups = entry.mesh.groups({axis.name}); !is_known(groups))
      count += groups.count();
  return count;
}

Json common_facts(const MeshEntry& entry, const std::string& name, const Handles& handles) {
  const Mesh& mesh = entry.mesh;
  Json layout = Json::array();
  for (std::size_t i = 0; i < mesh.rank(); ++i) layout.push_back(axis_json(mesh.axis_layout(i)));
  Json equal = Json::array();
  for (const Handles::Handle& handle : handles.all())
    if (handle.name != name && !handle.entry.mesh.is_same_object(mesh) && handle.entry == entry)
      equal.push_back(handle.name);
  return {{"ndim", mesh.rank()},
          {"shape", integers(mesh.shape())},
          {"size", mesh.size()},
          {"names", names_json(entry)},
          {"layout", layout},
          {"root", mesh.is_root() ? Json("self") : handles.name_of(mesh.root())},
          {"same_object_as", handles.name_of(mesh)},
          {"equal_to", equal},
          {"groups_by_dim", groups_by_dim(mesh)},
          {"new_groups", entry.has_groups ? new_groups(entry, handles) : 0}};
}

/// What a rank observes of a mesh.
Json view(const MeshEntry& entry, std::int64_t rank, int op, GroupIds& ids) {
  const Mesh& mesh = entry.mesh;
  std::optional<std::int64_t> row = mesh.row(rank);
  if (!row && mesh.rows() == 1) row = 0;
  std::optional<IntVector> coordinate = mesh.coordinate(rank);
  Json json = {{"mesh", row ? nested(ids_of(mesh.ranks(*row)), mesh.shape()) : Json()},
               {"coordinate", coordinate ? Json(integers(*coordinate)) : Json()}};
  if (!entry.has_groups) {
    json["groups_initialized"] = false;
    return json;
  }
  Json group_ranks = Json::array(), group_ids = Json::array(), local_ranks = Json::array();
  for (std::size_t i = 0; coordinate && i < mesh.rank(); ++i) {
    const std::string& axis = mesh.axes()[i].name;
    DeviceGroup group = mesh.group({axis}, rank).value();
    group_ranks.push_back(group.to_vector());
    group_ids.push_back(ids.id(rank, group, cat(op, ".", i)));
    local_ranks.push_back(mesh.local_rank({axis}, rank).value());
  }
  json["group_ranks"] = group_ranks;
  json["group_ids"] = group_ids;
  json["local_ranks"] = local_ranks;
  return json;
}

}  // namespace

Json mesh_facts(const MeshEntry& entry, int op, const std::string& name, ProgramState& state) {
  Json views = Json::object();
  for (std::int64_t rank : state.observers)
    views[std::to_string(rank)] = view(entry, rank, op, state.group_ids);
  return {{"common", common_facts(entry, name, state.handles)}, {"views", views}};
}

Json axis_json(const Layout& axis) {
  if (axis.size() == 1) return {Json::array(), Json::array()};
  return {integers(axis.shape().leaves()), integers(axis.stride().leaves())};
}

Json names_json(const MeshEntry& entry) {
  if (!entry.named) return {};
  Json names = Json::array();
  for (const MeshAxis& axis : entry.mesh.axes()) names.push_back(axis.name);
  return names;
}

std::vector<std::int64_t> ids_of(const RankMap& ranks) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < ranks.size(); ++i) ids.push_back(ranks[i]);
  return ids;
}

}  // namespace meshard::conformance
