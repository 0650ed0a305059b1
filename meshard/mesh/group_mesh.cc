// Mesh::from_group, from_groups: meshes that share the root and the groups they are made from.
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

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

}  // namespace meshard
