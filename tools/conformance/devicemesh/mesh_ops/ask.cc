// Operations that query meshes.
#include <set>

#include "meshard/base/cat.h"
#include "meshard/mesh/submeshes.h"
#include "tools/conformance/devicemesh/golden_error.h"
#include "tools/conformance/devicemesh/layout_adapter.h"
#include "tools/conformance/devicemesh/mesh_ops/facts.h"
#include "tools/conformance/devicemesh/mesh_ops/operations.h"

namespace meshard::conformance {
namespace {

/// `{"views": {rank: view(rank)}}`.
template <class View>
Json for_each_observer(const ProgramState& state, View view) {
  Json views = Json::object();
  for (std::int64_t rank : state.observers) views[std::to_string(rank)] = view(rank);
  return {{"views", views}};
}

Json value(Json value) { return {{"common", {{"value", std::move(value)}}}}; }

void check_groups(const MeshEntry& entry) {
  if (!entry.has_groups) throw GoldenError("RuntimeError", "groups_not_initialized");
}

/// All groups along a dimension of the entire root, each as a separate mesh.
Json all_submeshes(const Json& op, int index, ProgramState& state) {
  MeshEntry entry = entry_of(op.at("on"), state);
  if (!entry.has_groups) throw GoldenError("AttributeError", "groups_not_initialized");
  std::string axis = entry.mesh.axes()[axis_index_of(entry, op.at("dim"))].name;
  Json ranks = Json::array();
  bool own_roots = true;
  std::vector<Mesh> parts;
  for (const Mesh& part : entry.mesh.submeshes(axis)) {
    Mesh root = part.as_root();
    own_roots &= root.is_root();
    ranks.push_back(ids_of(root.rank_map()));
    parts.push_back(part);
    if (op.contains("as") && op.at("index") == ranks.size() - 1) {
      MeshEntry own = entry;
      own.mesh = root;
      state.handles.add(op.at("as"), std::move(own));
    }
  }
  Json names = Json::array({entry.named ? Json::array({axis}) : Json()});
  Json json = for_each_observer(state, [&](std::int64_t rank) {
    Json member_of = Json::array(), coordinates = Json::array(), ids = Json::array();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::optional<IntVector> coordinate = parts[i].coordinate(rank);
      if (!coordinate) continue;
      DeviceGroup group =
          parts[i].group({axis}, rank).value();  // the group of the mesh that it derives from
      member_of.push_back(i);
      coordinates.push_back(std::vector<std::int64_t>(coordinate->begin(), coordinate->end()));
      ids.push_back({state.group_ids.id(rank, group, cat(index, ".q"))});
    }
    return Json{{"member_of", member_of}, {"coordinate", coordinates}, {"group_ids", ids}};
  });
  json["common"] = {{"submeshes", ranks}, {"each_is_own_root", own_roots}, {"names", names}};
  return json;
}

Json get_group(const Json& op, int index, ProgramState& state) {
  Dimension dimension = dimension_of(entry_of(op.at("on"), state), op.at("dim"));
  return for_each_observer(state, [&](std::int64_t rank) -> Json {
    std::optional<DeviceGroup> group = dimension.mesh.group({dimension.axis}, rank);
    if (!group) return {{"group_ranks", Json::array()}, {"group_id", nullptr}};
    return {{"group_ranks", group->to_vector()},
            {"group_id", state.group_ids.id(rank, *group, cat(index, ".q"))}};
  });
}

Json all_groups(const Json& op, int index, ProgramState& state) {
  const MeshEntry& entry = entry_of(op.at("on"), state);
  check_groups(entry);
  return for_each_observer(state, [&](std::int64_t rank) -> Json {
    Json ids = Json::array();
    for (const MeshAxis& axis : entry.mesh.axes())
      if (std::optional<DeviceGroup> group = entry.mesh.group({axis.name}, rank))
        ids.push_back(state.group_ids.id(rank, *group, cat(index, ".q")));
    return {{"group_ids", ids}};
  });
}

Json local_rank(const Json& op, const ProgramState& state) {
  Dimension dimension = dimension_of(entry_of(op.at("on"), state), op.at("dim"));
  return for_each_observer(state, [&](std::int64_t rank) -> Json {
    std::optional<std::int64_t> found = dimension.mesh.local_rank({dimension.axis}, rank);
    return {{"value", found ? Json(*found) : Json()}};
  });
}

Json root_dim(const Json& op, const ProgramState& state) {
  const MeshEntry& entry = entry_of(op.at("on"), state);
  if (!entry.named) return value({});
  if (entry.mesh.rank() != 1) throw GoldenError("AssertionError", "root_dim_needs_1d");
  std::optional<std::size_t> found = entry.mesh.root().find_axis(entry.mesh.axes()[0].name);
  if (!found) throw GoldenError("KeyError", "dim_unknown_name");
  return value(*found);
}

Json size(const Json& op, const ProgramState& state) {
  const MeshEntry& entry = entry_of(op.at("on"), state);
  if (op.at("dim").is_null()) return value(entry.mesh.size());
  return value(entry.mesh.shape()[axis_index_of(entry, op.at("dim"))]);
}

Json equal(const Json& op, const ProgramState& state) {
  const MeshEntry& a = entry_of(op.at("a"), state);
  const MeshEntry& b = entry_of(op.at("b"), state);
  return {{"common",
           {{"equal", a == b},
            {"hash_equal", a.hash() == b.hash()},
            {"same_object", a.mesh.is_same_object(b.mesh)}}}};
}

Json flat_names(const Json& op, const ProgramState& state) {
  Json names = Json::array();
  for (const auto& [name, layout] : entry_of(op.at("on"), state).mesh.flattened())
    names.push_back(name);
  return value(names);
}

}  // namespace

const MeshEntry& entry_of(const Json& handle, const ProgramState& state) {
  const MeshEntry* entry = state.handles.find(handle);
  if (!entry) throw UndefinedHandle();
  return *entry;
}

std::size_t axis_index_of(const MeshEntry& entry, const Json& dim) {
  if (!dim.is_string()) return python_index(dim, entry.mesh.rank());
  if (!entry.named) throw GoldenError("KeyError", "dim_no_names");
  std::optional<std::size_t> found = entry.mesh.find_axis(dim.get<std::string>());
  if (!found) throw GoldenError("KeyError", "dim_unknown_name");
  return *found;
}

Dimension dimension_of(const MeshEntry& entry, const Json& dim) {
  check_groups(entry);
  if (dim.is_null() && entry.mesh.rank() != 1) throw GoldenError("RuntimeError", "dim_required");
  if (dim.is_null()) return {entry.mesh, entry.mesh.axes()[0].name};
  if (dim.is_string())
    for (const auto& [name, layout] : entry.mesh.flattened())
      if (name == dim) return {entry.mesh.root().slice(name), name};
  return {entry.mesh, entry.mesh.axes()[axis_index_of(entry, dim)].name};
}

Json ask(const Json& op, int index, ProgramState& state) {
  std::string kind = op.at("op");
  if (kind == "all_submeshes") return all_submeshes(op, index, state);
  if (kind == "get_group") return get_group(op, index, state);
  if (kind == "all_groups") return all_groups(op, index, state);
  if (kind == "local_rank") return local_rank(op, state);
  if (kind == "root_dim") return root_dim(op, state);
  if (kind == "size") return size(op, state);
  if (kind == "eq") return equal(op, state);
  if (kind == "flat_names") return flat_names(op, state);
  Mesh root = entry_of(op.at("on"), state).mesh.root();
  return {{"common", {{"root", state.handles.name_of(root)}}}};
}

}  // namespace meshard::conformance
