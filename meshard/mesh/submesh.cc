// Meshes of fewer devices, and of the devices of groups; axes in terms of the base.
#include "meshard/mesh/axes_index.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/submeshes.h"

namespace meshard {

// The mesh with these axes that contains the device at `index` of the root's rank map.
Mesh Mesh::submesh_at(const Axes& axes, std::int64_t index, SourceLocation where) const {
  Digits all = merged(axes);
  // With all devices of the base it is a view of the base, so that both can be used in one program.
  if (all.size() == base_state().domain.size()) return derive(axes, where);
  std::shared_ptr<State> state = state_of(axes, all, where);
  state->offset = index - all.offset(all(index));
  state->rank_map = root_state().rank_map.view(state->offset, all);
  state->root = state_->root ? state_->root : state_;
  state->domain = all;
  return finished(std::move(state));
}

Mesh::Axes Mesh::submesh_axes(const AxisNames& names, SourceLocation where) const {
  for (std::size_t i = 0; i < names.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (names[i] == names[j])
        throw_invalid(where, "[mesh] axis \"", names[i], "\" is named twice for a submesh of ",
                      *this);
  return slice(names, where).all_axes();
}

std::optional<Mesh> Mesh::submesh(const AxisNames& names, std::int64_t device_id,
                                  SourceLocation where) const {
  Axes chosen = submesh_axes(names, where);
  std::optional<std::int64_t> index = index_of(device_id);
  if (!index) return std::nullopt;
  return submesh_at(chosen, *index, where);
}

Submeshes Mesh::submeshes(const AxisNames& names, SourceLocation where) const {
  Axes chosen = submesh_axes(names, where);
  Digits rows = base_state().domain.without(merged(chosen));
  return Submeshes(*this, std::move(chosen), std::move(rows), where);
}

Mesh Submeshes::operator[](std::int64_t i) const {
  if (i < 0 || i >= size())
    throw Error(
        ErrorCode::kOutOfRange,
        cat("[mesh] submesh index ", i, " is out of range: the number of submeshes is ", size()));
  return mesh_.submesh_at(axes_, mesh_.state_->offset + rows_.offset(i), where_);
}

// The common kind of the root's axes that these digits step along.
AxisKind Mesh::kind_along(const Digits& digits, SourceLocation where) const {
  Axes touched;
  for (std::size_t i = 0; i < rank(); ++i)
    if (digits.effect_on(axis_digits(i)) != Digits::Effect::kNone)
      touched.push_back({axes()[i].name, axis_digits(i), axes()[i].kind});
  return merged_kind(touched, where);
}

Mesh Mesh::from_group(const DeviceGroup& group, std::string name, SourceLocation where) {
  return from_groups({group}, {std::move(name)}, where);
}

Mesh Mesh::from_groups(const std::vector<DeviceGroup>& groups,
                       const std::vector<std::string>& names, SourceLocation where) {
  if (groups.empty() || groups.size() != names.size())
    throw_invalid(where, "[mesh] ", names.size(), " axis names for ", groups.size(),
                  " groups: give one for each, and at least one group");
  Mesh root(std::static_pointer_cast<const State>(groups[0].root_));
  Axes own;
  std::vector<MeshAxis> checked;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Digits& digits = groups[i].family_->digits;
    if (groups[i].root_ != groups[0].root_)
      throw_invalid(where, "[mesh] group ", i, ", ", groups[i].ranks(),
                    ", has a different root mesh than group 0, ", groups[0].ranks());
    own.push_back({names[i], digits, root.kind_along(digits, where)});
    checked.push_back({names[i], digits.size()});
  }
  check_mesh_axes(checked, where);
  Digits all = merged(own);
  if (!all.is_orthogonal())
    throw_invalid(where, "[mesh] cannot make a mesh from groups that run along the same axes of ",
                  root, ": each group needs different axes");
  // The index in the rank map whose coordinates along the groups are all 0. It is the same for all
  // groups that contain one device.
  std::int64_t first = groups[0].offset_ - all.offset(all(groups[0].offset_));
  for (const DeviceGroup& group : groups)
    if (group.offset_ - all.offset(all(group.offset_)) != first)
      throw_invalid(where, "[mesh] the groups ", groups[0].ranks(), " and ", group.ranks(), " of ",
                    root, " have no device in common");
  return root.submesh_at(own, first, where);
}

Result<AxisList> Mesh::axes_in_base(const AxisList& axes) const {
  return caught([&]() -> Result<AxisList> {  // an unknown or repeated axis
    Digits along = digits(axes);
    Mesh base = this->base();
    Result<Digits> positions = along.within(merged(base.all_axes()));
    if (!positions) return positions.error();
    return axes_of(base, positions->layout());
  });
}

}  // namespace meshard
