// Mesh::rename, squeeze, unsqueeze: names, and axes of size 1.
#include "meshard/mesh/mesh.h"

namespace meshard {

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
  Axes kept;
  for (Axis& axis : all_axes()) {
    bool dropped = false;
    for (std::string_view name : names) dropped |= name == axis.name;
    if (!dropped) kept.push_back(std::move(axis));
  }
  return derive(kept, where);
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

}  // namespace meshard
