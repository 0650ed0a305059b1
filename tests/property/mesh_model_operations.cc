// The operations of the model, by enumeration of table entries.
#include <algorithm>
#include <set>

#include "tests/property/mesh_model.h"

namespace meshard::model {
namespace {

bool is_name(const std::string& name) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
  return !name.empty() && letters.find(name[0]) != std::string::npos &&
         name.find_first_not_of(letters + "0123456789") == std::string::npos;
}

std::optional<std::size_t> find(const Axes& axes, const std::string& name) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name) return i;
  return std::nullopt;
}

std::int64_t product_of(const Axes& axes) {
  std::int64_t size = 1;
  for (const MeshAxis& axis : axes) size *= axis.size;
  return size;
}

// Whether a list of new axes is valid.
bool are_axes(const Axes& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (!is_name(axes[i].name) || axes[i].size < 1 || find(axes, axes[i].name) != i) return false;
  return true;
}

bool repeats(const Names& names) {
  return std::set<std::string>(names.begin(), names.end()).size() < names.size();
}

Axes axes_of(const std::vector<AxisTable>& tables) {
  Axes axes;
  for (const AxisTable& table : tables) axes.push_back({table.name, table.size()});
  return axes;
}

Ints offsets_of(const Ints& line) {
  Ints offsets;
  for (int place : line) offsets.push_back(place - line[0]);
  return offsets;
}

// Whether the name can be registered for the axis at the root. The caller makes the entry.
bool may_register(const Root& root, const std::string& name, const Ints& offsets) {
  if (!is_name(name) || find(root.axes, name)) return false;
  for (const FlatName& flat : root.flat_names)
    if (flat.name == name) return flat.offsets == offsets;
  return true;
}

FlatName& registered(Root& root, const std::string& name, const Ints& offsets) {
  for (FlatName& flat : root.flat_names)
    if (flat.name == name) return flat;
  root.flat_names.push_back({name, offsets, 0, 0});
  return root.flat_names.back();
}

}  // namespace

Answer Model::slice(const MeshPtr& mesh, const Names& names) {
  bool same = names.size() == mesh->axes.size();
  for (std::size_t i = 0; same && i < names.size(); ++i) same = names[i] == mesh->axes[i].name;
  if (same) return {Answer::kMesh, mesh};
  std::vector<AxisTable> chosen;
  for (const std::string& name : names) {
    if (std::optional<std::size_t> own = find(mesh->axes, name)) {
      chosen.push_back(axis_table(*mesh, *own));
      continue;
    }
    const FlatName* flat = nullptr;
    for (const FlatName& known : mesh->root->flat_names)
      if (known.name == name) flat = &known;
    if (flat == nullptr || !equal(*mesh, *root(mesh).mesh)) return {};
    chosen.push_back(moved_along(name, flat->offsets, mesh->root->devices.size()));
  }
  std::optional<std::vector<Ints>> rows = join(mesh->base_mesh(), chosen);
  return rows ? derived(mesh, axes_of(chosen), *rows) : Answer{};
}

Answer Model::permute(const MeshPtr& mesh, const Names& names) {
  Names wanted = names, given;
  for (const MeshAxis& axis : mesh->axes) given.push_back(axis.name);
  std::sort(wanted.begin(), wanted.end());
  std::sort(given.begin(), given.end());
  if (wanted != given) return {};
  std::vector<AxisTable> chosen;
  for (const std::string& name : names)
    chosen.push_back(axis_table(*mesh, *find(mesh->axes, name)));
  return derived(mesh, axes_of(chosen), *join(mesh->base_mesh(), chosen));
}

Answer Model::flatten(const MeshPtr& mesh, std::string name) {
  if (name.empty())
    for (const MeshAxis& axis : mesh->axes) name += (name.empty() ? "" : "_") + axis.name;
  if (mesh->axes.size() == 1 && mesh->axes[0].name == name) return {Answer::kMesh, mesh};
  Ints offsets = offsets_of(mesh->rows[0]);
  if (!may_register(*mesh->root, name, offsets)) return {};
  FlatName& flat = registered(*mesh->root, name, offsets);
  Answer answer = derived(mesh, {{name, mesh->size()}}, mesh->rows);
  if (flat.object != 0 && flat.base_object == mesh->base_mesh().object) {
    auto same = std::make_shared<Mesh>(*answer.mesh);
    same->object = flat.object;
    answer.mesh = same;
  } else {
    flat.object = answer.mesh->object;
    flat.base_object = mesh->base_mesh().object;
  }
  return answer;
}

Answer Model::flatten(const MeshPtr& mesh, const Names& names, const std::string& name) {
  std::vector<AxisTable> chosen, kept;
  for (const std::string& wanted : names) {
    std::optional<std::size_t> own = find(mesh->axes, wanted);
    if (!own) return {};
    chosen.push_back(axis_table(*mesh, *own));
  }
  if (names.size() == 1 && names[0] == name) return {Answer::kMesh, mesh};
  std::optional<std::vector<Ints>> lines = join(mesh->base_mesh(), chosen);
  if (names.empty() || !lines) return {};
  Ints offsets = offsets_of((*lines)[0]);
  AxisTable flat = axis_of_lines(name, *lines, mesh->root->devices.size());
  bool placed = false;
  for (std::size_t i = 0; i < mesh->axes.size(); ++i) {
    bool is_chosen = std::find(names.begin(), names.end(), mesh->axes[i].name) != names.end();
    if (!is_chosen) kept.push_back(axis_table(*mesh, i));
    if (!is_chosen || placed) continue;
    kept.push_back(flat);
    placed = true;
  }
  if (!may_register(*mesh->root, name, offsets)) return {};
  Answer answer = derived(mesh, axes_of(kept), *join(mesh->base_mesh(), kept));
  if (answer.mesh) registered(*mesh->root, name, offsets);
  return answer;
}

Answer Model::unflatten(const MeshPtr& mesh, const std::string& name, const Axes& parts) {
  std::optional<std::size_t> axis = find(mesh->axes, name);
  if (!axis || parts.empty() || !are_axes(parts) || product_of(parts) != mesh->axes[*axis].size)
    return {};
  Ints sizes;
  for (const MeshAxis& part : parts) sizes.push_back(static_cast<int>(part.size));
  if (!splits_into_layouts(axis_table(*mesh, *axis).lines[0], sizes)) return {};
  Axes axes = mesh->axes, placed = parts;
  if (wrong_ == Wrong::kUnflattenTurnsParts) std::reverse(placed.begin(), placed.end());
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(*axis));
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(*axis), placed.begin(), placed.end());
  return derived(mesh, axes, mesh->rows, /*may_refuse=*/true);
}

Answer Model::reshape(const MeshPtr& mesh, const Axes& axes) {
  if (!are_axes(axes) || product_of(axes) != mesh->size()) return {};
  Ints sizes;
  for (const MeshAxis& axis : axes) sizes.push_back(static_cast<int>(axis.size));
  if (!splits_into_layouts(mesh->rows[0], sizes)) return {};
  return derived(mesh, axes, mesh->rows);
}

Answer Model::rename(const MeshPtr& mesh,
                     const std::vector<std::pair<std::string, std::string>>& names) {
  Axes axes = mesh->axes;
  for (const auto& [from, to] : names) {
    if (!find(mesh->axes, from) || !is_name(to)) return {};
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (mesh->axes[i].name == from) axes[i].name = to;
  }
  return derived(mesh, axes, mesh->rows, /*may_refuse=*/true);
}

Answer Model::squeeze(const MeshPtr& mesh) {
  Axes kept;
  for (const MeshAxis& axis : mesh->axes)
    if (axis.size > 1) kept.push_back(axis);
  return derived(mesh, kept, mesh->rows);
}

Answer Model::squeeze(const MeshPtr& mesh, const Names& names) {
  Axes kept;
  for (const std::string& name : names) {
    std::optional<std::size_t> axis = find(mesh->axes, name);
    if (!axis || mesh->axes[*axis].size > 1) return {};
  }
  for (const MeshAxis& axis : mesh->axes)
    if (std::find(names.begin(), names.end(), axis.name) == names.end()) kept.push_back(axis);
  return derived(mesh, kept, mesh->rows);
}

Answer Model::unsqueeze(const MeshPtr& mesh, const std::string& name, int place) {
  if (!is_name(name) || place > static_cast<int>(mesh->axes.size()) || find(mesh->axes, name))
    return {};
  Axes axes = mesh->axes;
  axes.insert(axes.begin() + place, MeshAxis{name, 1});
  return derived(mesh, axes, mesh->rows);
}

Answer Model::concatenate(const std::vector<MeshPtr>& meshes) {
  if (meshes.empty()) return {};
  const Mesh& first = meshes[0]->base_mesh();
  std::vector<AxisTable> all;
  for (const MeshPtr& mesh : meshes) {
    const Mesh& base = mesh->base_mesh();
    // The axes step through lists of devices, which must have equal elements.
    if (first.devices(0) != base.devices(0) || first.rows[0] != base.rows[0]) return {};
    for (std::size_t i = 0; i < mesh->axes.size(); ++i) {
      all.push_back(axis_table(*mesh, i));
      all.back().line_of.resize(first.root->devices.size(), -1);
      all.back().index_of.resize(first.root->devices.size(), -1);
    }
  }
  std::optional<std::vector<Ints>> rows = join(first, all);
  return rows ? derived(meshes[0], axes_of(all), *rows) : Answer{};
}

Answer Model::row_as_mesh(const MeshPtr& mesh, const MeshPtr& slice, int row) {
  const Mesh& base = mesh->base_mesh();
  if (wrong_ == Wrong::kSubmeshOfFirstRow && mesh->rows.size() > 1) row = 0;
  if (slice->size() == base.size()) return derived(mesh, slice->axes, slice->rows);
  Mesh made;
  made.root = mesh->root;
  made.axes = slice->axes;
  made.rows = {slice->rows[row]};
  return {Answer::kMesh, finish(std::move(made))};
}

Answer Model::submesh(const MeshPtr& mesh, const Names& names, std::int64_t device) {
  if (repeats(names)) return {};
  Answer sliced = slice(mesh, names);
  if (sliced.kind == Answer::kRefused) return sliced;
  std::optional<int> place = mesh->place(device);
  if (!place) return {Answer::kNone, nullptr};
  return row_as_mesh(mesh, sliced.mesh, sliced.mesh->row_of[*place]);
}

Answer Model::submesh_at(const MeshPtr& mesh, const Names& names, int index) {
  if (repeats(names)) return {};
  Answer sliced = slice(mesh, names);
  if (sliced.kind == Answer::kRefused) return sliced;
  if (index < 0 || index >= static_cast<int>(sliced.mesh->rows.size())) return {};
  return row_as_mesh(mesh, sliced.mesh, index);
}

Answer Model::as_root(const MeshPtr& mesh) {
  if (mesh->rows.size() > 1) return {};
  MeshPtr made = make_root(mesh->axes, mesh->devices(0));
  return {mesh->has_repeated_name() ? Answer::kEither : Answer::kMesh, made};
}

MeshPtr Model::as_printed(const MeshPtr& mesh) {
  const Mesh& base = mesh->base_mesh();
  bool has_steps = true;  // every axis is a layout of the base's positions
  for (std::size_t i = 0; i < mesh->axes.size(); ++i) {
    std::set<Ints> steps;
    for (Ints line : axis_table(*mesh, i).lines) {
      for (int& place : line) place = base.position_of[place];
      steps.insert(offsets_of(line));
    }
    has_steps = has_steps && steps.size() == 1 &&
                splits_into_layouts(*steps.begin(), {static_cast<int>(mesh->axes[i].size)});
  }
  bool in_base_order = mesh->rows[0] == base.rows[0] && !mesh->has_repeated_name();
  if (!mesh->base || (mesh->rows.size() == 1 && (!has_steps || in_base_order)))
    return make_root(mesh->axes, mesh->devices(0));
  MeshPtr printed_base = make_root(base.axes, base.devices(0));
  std::vector<Ints> rows = mesh->rows;
  for (Ints& row : rows)
    for (int& place : row) place = base.position_of[place];
  return derived(printed_base, mesh->axes, rows).mesh;
}

}  // namespace meshard::model
