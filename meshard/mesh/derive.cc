// Meshes with other axes over the same rank map. Each operation has a test of its own.
// Tested in meshard/mesh/slice_test.cc.
#include <algorithm>
#include <utility>

#include "meshard/base/saturating.h"
#include "meshard/mesh/concatenate.h"
#include "meshard/mesh/mesh.h"
#include "meshard/mesh/root_table.h"

namespace meshard {
namespace {

// The smallest number of ranks that the layout fits. Sizes and strides that it rejects are left to
// the constructor.
std::int64_t ranks_of(const Layout& layout) {
  std::int64_t ranks = 1;
  std::span<const std::int64_t> sizes = layout.shape().leaves(), strides = layout.stride().leaves();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1) ranks = std::max(ranks, saturating_multiply(sizes[i], strides[i]));
  return ranks;
}

// Axes with those that are named replaced by `parts`, at the place of the first.
template <class Axes>
Axes with_replaced(const Axes& all, const AxisNames& names, const Axes& parts) {
  Axes result;
  bool placed = false;
  for (const auto& axis : all) {
    if (std::find(names.begin(), names.end(), axis.name) == names.end()) {
      result.push_back(axis);
    } else if (!std::exchange(placed, true)) {
      result.insert(result.end(), parts.begin(), parts.end());
    }
  }
  return result;
}

}  // namespace

Mesh::Mesh(const Layout& layout, RankMap rank_map, const std::vector<std::string>& names,
           SourceLocation where) {
  bool single = layout.shape().is_integer();
  std::size_t modes = layout.rank();
  if (names.size() != modes)
    throw_invalid(where, "[mesh] ", names.size(), " axis names for the ", modes, " modes of ",
                  layout);
  Axes own;
  std::vector<MeshAxis> checked;
  for (std::size_t i = 0; i < modes; ++i) {
    Layout mode = single ? layout : layout.mode(i);
    own.push_back({names[i], {}});
    checked.push_back({names[i], mode.size()});
    for (std::size_t leaf = 0; leaf < mode.shape().leaves().size(); ++leaf) {
      Digit digit{mode.shape().leaves()[leaf], mode.stride().leaves()[leaf]};
      if (digit.size > 1 && digit.stride < 1)
        throw_invalid(where, "[mesh] axis \"", names[i], "\" = ", mode, " has stride ",
                      digit.stride, "; it must be at least 1");
      if (digit.size > 1) own.back().digits.push_back(digit);
    }
  }
  check_mesh_axes(checked, where);
  Digits all = merged(own);
  std::int64_t ranks = rank_map.size();
  if (!all.is_orthogonal())
    throw_invalid(where, "[mesh] modes of ", layout,
                  " overlap, or are not multiples of one another");
  if (!all.lies_within(ranks))
    throw_invalid(where, "[mesh] ", layout, " does not fit the ", ranks,
                  " positions of the rank map: size times stride of its slowest mode must divide "
                  "their number");
  Mesh root({{"ranks", ranks}}, std::move(rank_map), where);
  *this = root.derive(own, where);
}

Mesh::Mesh(const Layout& layout, const std::vector<std::string>& names, SourceLocation where)
    : Mesh(layout, RankMap::identity(ranks_of(layout)), names, where) {}

Mesh Mesh::slice(const AxisNames& names, SourceLocation where) const {
  bool same = names.size() == rank();
  for (std::size_t i = 0; same && i < rank(); ++i) same = names[i] == axes()[i].name;
  if (same) return *this;

  // The comparison with the root is only needed if a name is not an axis of this mesh.
  bool may_be_flat = false;
  for (std::string_view name : names) may_be_flat = may_be_flat || !find_axis(name);
  if (!may_be_flat || !(*this == root())) return derive(axes_named(names, where), where);

  Axes chosen;
  for (std::string_view name : names) {
    std::optional<RootTable::FlatAxis> flat;
    if (!find_axis(name)) flat = root_state().table->find(name);
    chosen.push_back(flat ? Axis{flat->name, flat->digits, flat->kind}
                          : axes_named(name, where)[0]);
  }
  return derive(chosen, where);
}

Mesh Mesh::permute(const AxisNames& names, SourceLocation where) const {
  Axes ordered = axes_named(names, where);
  bool all = names.size() == rank();
  for (const MeshAxis& axis : axes()) {
    std::size_t wanted = 0, given = 0;
    for (const MeshAxis& other : axes()) wanted += other.name == axis.name;
    for (std::string_view name : names) given += name == axis.name;
    all = all && wanted == given;
  }
  if (!all)
    throw_invalid(where, "[mesh] permute needs every axis of ", *this, " once, not {",
                  names.to_string(), "}");
  return derive(ordered, where);
}

// Registers the name of an axis at the root, and returns the axis.
Mesh::Axis Mesh::registered(Axis axis, SourceLocation where) const {
  const State& root = root_state();
  if (axis.name.empty())
    throw_invalid(where, "[mesh] the flattened axes of ", *this, " need a name");
  if (!is_axis_name(axis.name))
    throw_invalid(where, "[mesh] invalid axis name \"", axis.name,
                  "\": use letters, digits and _, and do not begin with a digit");
  for (const MeshAxis& own : root.axes)
    if (own.name == axis.name)
      throw_invalid(where, "[mesh] \"", axis.name, "\" is an axis of the root ", this->root(),
                    ": choose another name for the flattened axes of ", *this);
  if (std::optional<Digits> other = root.table->add(axis.name, axis.digits, axis.kind))
    throw_invalid(where, "[mesh] \"", axis.name, "\" already names the axis ", other->layout(),
                  " at the root ", this->root(), ", and cannot name ", axis.digits.layout());
  return axis;
}

Mesh Mesh::flatten(std::string name, SourceLocation where) const {
  if (name.empty())
    for (const MeshAxis& axis : axes()) name += (name.empty() ? "" : "_") + axis.name;
  if (rank() == 1 && axes()[0].name == name) return *this;

  Axis flat = registered({name, merged(all_axes()), merged_kind(all_axes(), where)}, where);
  RootTable& table = *root_state().table;
  if (std::shared_ptr<const void> known = table.find(name)->mesh.lock()) {
    Mesh mesh(std::static_pointer_cast<const State>(known));
    if (&mesh.base_state() == &base_state()) return mesh;
  }
  // The table's weak reference must not keep the state's memory: not made by make_shared.
  Mesh mesh(std::shared_ptr<const State>(new State(*derive({flat}, where).state_)));
  table.remember(name, mesh.state_);
  return mesh;
}

Mesh Mesh::flatten(const AxisNames& names, std::string name, SourceLocation where) const {
  if (names.size() == 1 && names[0] == name) return axes_named(names, where), *this;
  Axes chosen = axes_named(names, where);
  Digits all = merged(chosen);
  if (chosen.empty() || !all.is_orthogonal())
    throw_invalid(where, "[mesh] cannot flatten {", names.to_string(), "} in ", *this,
                  ": name at least one axis, and each axis once");
  AxisKind kind = merged_kind(chosen, where);
  // May throw, so it runs before the name is registered.
  Mesh mesh = derive(with_replaced(all_axes(), names, {{name, all, kind}}), where);
  registered({std::move(name), all, kind}, where);
  return mesh;
}

// Cuts an axis into parts, major first. The parts have the axis's kind.
Mesh::Axes Mesh::parts_of(const Axis& axis, const std::vector<MeshAxis>& parts,
                          SourceLocation where) const {
  check_mesh_axes(parts, where);
  std::int64_t size = 1;
  for (const MeshAxis& part : parts) size *= part.size;
  if (size != axis.digits.size())
    throw_invalid(where, "[mesh] parts of ", size, " positions cannot replace the ",
                  axis.digits.size(), " positions of axis \"", axis.name, "\" in ", *this);
  Axes cut_axes;
  for (const MeshAxis& part : parts) {
    size /= part.size;
    Result<Digits> piece = cut(axis.digits, part.size, size);
    if (part.kind == AxisKind::kExplicit && axis.kind == AxisKind::kAuto)
      throw_invalid(where, "[mesh] \"", part.name, "\" cannot be explicit: it is a part of \"",
                    axis.name, "\", which is auto, in ", *this);
    if (!piece)
      throw_invalid(where, "[mesh] axis \"", axis.name, "\" = ", axis.digits.layout(),
                    " cannot be cut at \"", part.name, "\" = ", part.size, ": ",
                    piece.error().message());
    cut_axes.push_back({part.name, *piece, axis.kind});
  }
  return cut_axes;
}

Mesh Mesh::unflatten(std::string_view name, std::vector<MeshAxis> parts,
                     SourceLocation where) const {
  Axis axis = axes_named(name, where)[0];
  if (parts.empty())
    throw_invalid(where, "[mesh] no parts are given for axis \"", name, "\" of ", *this,
                  "; to drop an axis of size 1, use squeeze");
  Axes pieces = parts_of(axis, parts, where), result;
  bool placed = false;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (axes()[i].name != name || placed) {
      result.push_back({axes()[i].name, axis_digits(i), axes()[i].kind});
      continue;
    }
    result.insert(result.end(), pieces.begin(), pieces.end());
    placed = true;
  }
  return derive(result, where);
}

Mesh Mesh::reshape(std::vector<MeshAxis> wanted, SourceLocation where) const {
  std::string all;
  for (const MeshAxis& axis : axes()) append(all, cat(all.empty() ? "" : ", ", axis.name));
  return derive(parts_of({all, merged(all_axes()), merged_kind(all_axes(), where)}, wanted, where),
                where);
}

Mesh Mesh::rename(const std::vector<std::pair<std::string, std::string>>& names,
                  SourceLocation where) const {
  Axes renamed = all_axes();
  for (const auto& [from, to] : names) {
    axes_named(from, where);
    check_mesh_axes({{to, 1}}, where);
    for (std::size_t i = 0; i < rank(); ++i)
      if (axes()[i].name == from) renamed[i].name = to;
  }
  return derive(renamed, where);
}

Mesh Mesh::squeeze() const {
  Axes kept;
  for (Axis& axis : all_axes())
    if (axis.digits.size() > 1) kept.push_back(std::move(axis));
  return derive(kept, {});
}

Mesh Mesh::squeeze(const AxisNames& names, SourceLocation where) const {
  for (const Axis& axis : axes_named(names, where))
    if (axis.digits.size() > 1)
      throw_invalid(where, "[mesh] axis \"", axis.name, "\" of size ", axis.digits.size(),
                    " cannot be squeezed out of ", *this, ": only axes of size 1 can");
  return derive(with_replaced(all_axes(), names, {}), where);
}

Mesh Mesh::unsqueeze(std::string name, std::size_t place, SourceLocation where) const {
  check_mesh_axes({{name, 1}}, where);
  if (place > rank() || find_axis(name))
    throw_invalid(where, "[mesh] cannot insert axis \"", name, "\" before axis ", place, " of ",
                  *this,
                  place > rank() ? ": the position is out of range" : ": the name is already used");
  Axes more = all_axes();
  more.insert(more.begin() + static_cast<std::ptrdiff_t>(place),
              Axis{std::move(name), {}, AxisKind::kAuto});
  return derive(more, where);
}

Mesh concatenate(std::span<const Mesh> meshes, SourceLocation where) {
  if (meshes.empty()) throw_invalid(where, "[mesh] concatenate requires at least one mesh");
  Mesh::Axes all;
  for (const Mesh& mesh : meshes) {
    const Mesh::State &first = meshes[0].base_state(), &base = mesh.base_state();
    if (&first != &base && (first.rank_map != base.rank_map || first.domain != base.domain ||
                            first.offset != base.offset))
      throw_invalid(where, "[mesh] meshes of different devices cannot be concatenated: ", meshes[0],
                    " of ", meshes[0].base(), " and ", mesh, " of ", mesh.base());
    if (meshes[0].root_state().properties != mesh.root_state().properties)
      throw_invalid(where,
                    "[mesh] meshes with different device types or rules for uneven sizes "
                    "cannot be concatenated: ",
                    meshes[0].root(), " and ", mesh.root());
    for (Mesh::Axis& axis : mesh.all_axes()) all.push_back(std::move(axis));
  }
  return meshes[0].derive(all, where);
}

Mesh concatenate(std::initializer_list<Mesh> meshes, SourceLocation where) {
  return concatenate(std::span<const Mesh>(meshes.begin(), meshes.size()), where);
}

}  // namespace meshard
