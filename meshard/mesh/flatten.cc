// Mesh::flatten: merges several axes into one, whose name is registered at the root.
#include "meshard/mesh/mesh.h"
#include "meshard/mesh/root_table.h"

namespace meshard {

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
  Axes result;
  bool placed = false;
  for (std::size_t i = 0; i < rank(); ++i) {
    bool is_chosen = false;
    for (std::string_view chosen_name : names) is_chosen |= chosen_name == axes()[i].name;
    if (!is_chosen) result.push_back({axes()[i].name, axis_digits(i), axes()[i].kind});
    if (!is_chosen || placed) continue;
    result.push_back({name, all, kind});
    placed = true;
  }
  Mesh mesh = derive(result, where);  // may throw, so it runs before the name is registered
  registered({std::move(name), all, kind}, where);
  return mesh;
}

}  // namespace meshard
