// Mesh::slice, permute: some axes, or all of them in another order.
#include "meshard/mesh/mesh.h"
#include "meshard/mesh/root_table.h"

namespace meshard {

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

}  // namespace meshard
