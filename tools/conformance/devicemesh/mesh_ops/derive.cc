// Operations that derive a mesh from others.
#include "meshard/mesh/concatenate.h"
#include "tools/conformance/devicemesh/golden_error.h"
#include "tools/conformance/devicemesh/layout_adapter.h"
#include "tools/conformance/devicemesh/mesh_ops/facts.h"
#include "tools/conformance/devicemesh/mesh_ops/operations.h"

namespace meshard::conformance {
namespace {

MeshEntry with_mesh(MeshEntry entry, Mesh mesh) {
  entry.mesh = std::move(mesh);
  return entry;
}

std::vector<std::string> names_in(const Json& names) {
  if (names.is_string()) return {names.get<std::string>()};
  return names.get<std::vector<std::string>>();
}

std::vector<std::string> axis_names(const Mesh& mesh) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
  return names;
}

void check_groups_of_slice(const MeshEntry& entry) {
  if (!entry.has_groups) throw GoldenError("AttributeError", "groups_not_initialized");
}

MeshEntry slice(const Json& op, const ProgramState& state) {
  const MeshEntry& entry = entry_of(op.at("on"), state);
  if (!entry.named) throw GoldenError("RuntimeError", "slice_no_names");
  std::vector<std::string> names = names_in(op.at("names"));
  // The reference compares the names with a tuple. A Python list is never equal to a tuple, so a
  // list returns a copy instead of the mesh itself.
  if (op.value("as_list", false) && names == axis_names(entry.mesh))
    return with_mesh(entry, concatenate({entry.mesh}));
  MeshEntry result = with_mesh(entry, entry.mesh.slice(names));
  if (!result.mesh.is_same_object(entry.mesh))
    check_groups_of_slice(entry);  // the slice inherits them
  result.named = !names.empty();
  return result;
}

MeshEntry flatten(const Json& op, const ProgramState& state) {
  const MeshEntry& entry = entry_of(op.at("on"), state);
  if (!entry.named) throw GoldenError("RuntimeError", "flatten_no_names");
  std::string name = op.at("name").is_null() ? "" : op.at("name").get<std::string>();
  MeshEntry result = with_mesh(entry, entry.mesh.flatten(name));
  result.has_groups = true;  // the reference always makes groups for a flattened mesh
  return result;
}

/// The axes before `from`, the parts of axis `k`, and the axes from `to` on.
Mesh with_parts(const Mesh& mesh, std::size_t k, const std::vector<MeshAxis>& parts,
                std::size_t from, std::size_t to) {
  std::vector<std::string> names = axis_names(mesh), part_names;
  for (const MeshAxis& part : parts) part_names.push_back(part.name);
  std::vector<Mesh> meshes;
  if (from > 0) meshes.push_back(mesh.slice(std::vector(names.begin(), names.begin() + from)));
  meshes.push_back(mesh.slice(names[k]).unflatten(names[k], parts).slice(part_names));
  if (to < names.size()) meshes.push_back(mesh.slice(std::vector(names.begin() + to, names.end())));
  return concatenate(meshes);
}

/// The reference replaces dimension `dim` with the Python slice dim:dim+1 of its list. For -1, this
/// inserts the parts before the last dimension: they overlap the original axis, unless it has one
/// element.
Mesh unflatten_at(const Mesh& mesh, std::int64_t dim, const std::vector<MeshAxis>& parts) {
  std::size_t k = python_index(dim, mesh.rank());
  if (dim == -1) return with_parts(mesh, k, parts, k, k);
  const std::string& name = mesh.axes()[k].name;
  if (mesh.axis_index(name) != k)
    return with_parts(mesh, k, parts, k, k + 1);  // a name that is repeated
  return mesh.unflatten(name, parts);
}

MeshEntry unflatten(const Json& op, const ProgramState& state) {
  const MeshEntry& entry = entry_of(op.at("on"), state);
  const Mesh& mesh = entry.mesh;
  const Json& dim = op.at("dim");
  std::vector<std::int64_t> sizes = op.at("sizes");
  std::vector<std::string> names = names_in(op.at("names"));
  if (dim.is_number() && dim >= mesh.rank())
    throw GoldenError("ValueError", "unflatten_dim_out_of_range");
  if (sizes.size() != names.size()) throw GoldenError("RuntimeError", "unflatten_count_mismatch");
  if (!entry.named) throw GoldenError("TypeError", "names_required");
  std::vector<MeshAxis> parts;
  for (std::size_t i = 0; i < sizes.size(); ++i) parts.push_back({names[i], sizes[i]});
  if (dim.is_string()) return with_mesh(entry, mesh.unflatten(dim.get<std::string>(), parts));
  return with_mesh(entry, unflatten_at(mesh, dim, parts));
}

MeshEntry concat(const Json& op, const ProgramState& state) {
  std::vector<Mesh> meshes;
  const MeshEntry* first = nullptr;
  for (const Json& handle : op.at("of")) {
    const MeshEntry& entry = entry_of(handle, state);
    check_groups_of_slice(entry);
    if (!first) first = &entry;
    meshes.push_back(entry.mesh);
  }
  if (!first) throw GoldenError("IndexError", "index_out_of_range");
  for (const Json& handle : op.at("of"))
    if (!entry_of(handle, state).named) throw GoldenError("TypeError", "names_required");
  return with_mesh(*first, concatenate(meshes));
}

}  // namespace

MeshEntry derive(const Json& op, const ProgramState& state) {
  std::string kind = op.at("op");
  if (kind == "slice") return slice(op, state);
  if (kind == "flatten") return flatten(op, state);
  if (kind == "unflatten") return unflatten(op, state);
  return concat(op, state);
}

}  // namespace meshard::conformance
