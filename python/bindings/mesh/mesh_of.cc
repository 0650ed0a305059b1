// What Python's Mesh is made from.
#include <optional>
#include <utility>

#include "meshard/base/error.h"
#include "meshard/mesh/mesh.h"
#include "python/bindings/arrays/host_arrays.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/values.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

std::int64_t integer_of(nb::handle object, std::string_view what) {
  std::int64_t number = 0;
  if (!load_integer(object.ptr(), number))
    throw_invalid({}, "[mesh] ", what, " is an integer; got ", repr_text(object));
  return number;
}

std::string axis_name_of(nb::handle object) {
  if (!nb::isinstance<nb::str>(object))
    throw_invalid({}, "[mesh] the name of an axis is a string; got ", repr_text(object));
  return nb::cast<std::string>(object);
}

bool is_list(nb::handle object) {
  return nb::isinstance<nb::tuple>(object) || nb::isinstance<nb::list>(object);
}

// The rows of a nested list of device ids, in order; `shape` becomes the list's.
void read_nested(nb::handle object, std::size_t depth, std::vector<std::int64_t>& ids,
                 IntVector& shape) {
  constexpr std::string_view kRagged = "[mesh] the rows of the device ids differ in length";
  if (!is_list(object)) {
    if (depth != shape.size()) throw_invalid({}, kRagged);
    ids.push_back(integer_of(object, "a device id"));
    return;
  }
  const auto size = static_cast<std::int64_t>(nb::len(object));
  if (depth == shape.size() && ids.empty()) shape.push_back(size);
  if (depth >= shape.size() || shape[depth] != size || depth > 64) throw_invalid({}, kRagged);
  for (nb::handle row : object) read_nested(row, depth + 1, ids, shape);
}

bool is_range(nb::handle object) {
  return object.type().is(reinterpret_cast<PyObject*>(&PyRange_Type));
}

// Device ids rather than names.
bool are_ids(nb::handle object) {
  if (is_numpy_array(object.ptr()) || is_range(object) || nb::isinstance<RankMap>(object))
    return true;
  return is_list(object) && nb::len(object) > 0 && !nb::isinstance<nb::str>(nb::object(object[0]));
}

// Device ids in the shape of the mesh: an array, or lists in a list, rather than (name, size)
// pairs.
bool is_device_array(nb::handle object) {
  if (is_numpy_array(object.ptr())) return true;
  if (!is_list(object) || nb::len(object) == 0) return false;
  nb::object first(object[0]);
  return is_list(first) && (nb::len(first) == 0 || !nb::isinstance<nb::str>(nb::object(first[0])));
}

Mesh mesh_of_layout(const Layout& layout, nb::handle names, nb::handle device_ids) {
  const MaybeNames given = names_given(names);
  if (!given) throw_invalid({}, "[mesh] the axes of a layout need names");
  return device_ids.is_none() ? Mesh(layout, *given, SourceLocation{})
                              : Mesh(layout, rank_map_given(device_ids), *given, SourceLocation{});
}

// A jax.sharding.Mesh, or an AbstractMesh, whose devices are 0 to n-1.
bool is_mesh_of_jax(nb::handle object) {
  return nb::hasattr(object, "axis_names") && nb::hasattr(object, "axis_sizes") &&
         !nb::isinstance<Mesh>(object);
}

Mesh mesh_of_jax(nb::handle given) {
  std::vector<MeshAxis> axes =
      mesh_axes(nb::cast<Dimensions>(given.attr("axis_sizes")),
                names_given(nb::object(given.attr("axis_names"))), SourceLocation{});
  nb::object kinds = nb::getattr(given, "axis_types", nb::none());
  for (std::size_t i = 0; !kinds.is_none() && i < axes.size(); ++i)
    if (nb::cast<std::string>(nb::object(kinds[i].attr("name"))) == "Explicit")
      axes[i].kind = AxisKind::kExplicit;
  nb::object devices;
  try {
    devices = given.attr("devices");
  } catch (nb::python_error&) {  // an AbstractMesh
    return Mesh(std::move(axes), SourceLocation{});
  }
  std::vector<std::int64_t> ids;
  for (nb::handle device : nb::object(devices.attr("reshape")(-1)))
    ids.push_back(integer_of(nb::object(device.attr("id")), "a device id"));
  return Mesh(std::move(axes), std::move(ids), SourceLocation{});
}

void make_explicit(std::vector<MeshAxis>& axes, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    MeshAxis* found = nullptr;
    for (MeshAxis& axis : axes)
      if (axis.name == name) found = &axis;
    if (!found)
      throw_invalid({}, "[mesh] the explicit axis ", quoted(name), " is not an axis of the mesh");
    found->kind = AxisKind::kExplicit;
  }
}

}  // namespace

std::string repr_text(nb::handle object) {
  return nb::cast<std::string>(nb::object(nb::repr(object)));
}

MaybeNames names_given(nb::handle names) {
  if (names.is_none()) return std::nullopt;
  if (nb::isinstance<nb::str>(names)) return std::vector<std::string>{axis_name_of(names)};
  if (!is_list(names))
    throw_invalid({}, "[mesh] the names of the axes are a sequence of strings; got ",
                  repr_text(names));
  std::vector<std::string> all;
  for (nb::handle name : names) all.push_back(axis_name_of(name));
  return all;
}

RankMap rank_map_given(nb::handle ids) {
  if (nb::isinstance<RankMap>(ids)) return nb::cast<RankMap>(ids);
  if (is_range(ids) && nb::len(ids) > 0)
    return RankMap::affine(nb::cast<std::int64_t>(ids.attr("start")),
                           nb::cast<std::int64_t>(ids.attr("step")),
                           static_cast<std::int64_t>(nb::len(ids)));
  nb::object list = nb::borrow(ids);
  if (nb::hasattr(ids, "tolist")) list = ids.attr("reshape")(-1).attr("tolist")();
  if (!nb::isinstance<nb::iterable>(list) || nb::isinstance<nb::str>(list))
    throw_invalid({}, "[mesh] device ids are a sequence of integers; got ", repr_text(ids));
  std::vector<std::int64_t> all;
  for (nb::handle id : list) all.push_back(integer_of(id, "a device id"));
  return RankMap::listed(std::move(all));
}

std::vector<MeshAxis> axes_given(nb::handle given, nb::handle names) {
  std::vector<MeshAxis> axes;
  if (nb::isinstance<nb::dict>(given)) {
    if (!names.is_none())
      throw_invalid({}, "[mesh] a dictionary of sizes has the names of the axes already");
    for (auto [name, size] : nb::borrow<nb::dict>(given))
      axes.push_back({axis_name_of(name), integer_of(size, "the size of an axis")});
    return axes;
  }
  Dimensions sizes;
  if (load_dimensions(given.ptr(), sizes)) return mesh_axes(sizes, names_given(names), {});
  if (!is_list(given))
    throw_invalid({},
                  "[mesh] the axes are a dictionary of sizes, a tuple of sizes, a list of (name, "
                  "size) pairs or an array of device ids; got ",
                  repr_text(given));
  if (!names.is_none() && nb::len(given) > 0)
    throw_invalid({}, "[mesh] names are for a tuple of sizes; got ", repr_text(given));
  for (nb::handle axis : given) {
    if (nb::isinstance<MeshAxis>(axis)) {
      axes.push_back(nb::cast<MeshAxis>(axis));
    } else if (is_list(axis) && nb::len(axis) == 2) {
      axes.push_back({axis_name_of(nb::object(axis[0])),
                      integer_of(nb::object(axis[1]), "the size of an axis")});
    } else {
      throw_invalid({}, "[mesh] an axis is a (name, size) pair or a MeshAxis; got ",
                    repr_text(axis));
    }
  }
  return axes;
}

Mesh mesh_of(nb::object axes, nb::object names, nb::object device_ids,
             const std::vector<std::string>& explicit_axes) {
  if (axes.is_none()) axes = nb::tuple();
  if (nb::isinstance<nb::str>(axes)) {
    if (!names.is_none() || !device_ids.is_none() || !explicit_axes.empty())
      throw_invalid({}, "[mesh] the text of a mesh says all; nothing else may be given");
    return Mesh::parse(nb::cast<std::string>(axes)).value();
  }
  if (is_mesh_of_jax(axes)) {
    if (!names.is_none() || !device_ids.is_none() || !explicit_axes.empty())
      throw_invalid({}, "[mesh] JAX's mesh says all; nothing else may be given");
    return mesh_of_jax(axes);
  }
  if (device_ids.is_none() && are_ids(names)) {
    device_ids = std::move(names);
    names = nb::none();
  }
  if (nb::isinstance<Layout>(axes)) {
    if (!explicit_axes.empty())
      throw_invalid({}, "[mesh] with_axis_kind makes axes of a layout explicit");
    return mesh_of_layout(nb::cast<Layout>(axes), names, device_ids);
  }
  std::vector<MeshAxis> all;
  if (is_device_array(axes)) {
    if (!device_ids.is_none()) throw_invalid({}, "[mesh] device ids are given twice");
    std::vector<std::int64_t> ids;
    IntVector shape;
    nb::object list = is_numpy_array(axes.ptr()) ? nb::object(axes.attr("tolist")()) : axes;
    read_nested(list, 0, ids, shape);
    all = mesh_axes(shape, names_given(names), {});
    make_explicit(all, explicit_axes);
    return Mesh(std::move(all), std::move(ids), SourceLocation{});
  }
  all = axes_given(axes, names);
  make_explicit(all, explicit_axes);
  if (device_ids.is_none()) return Mesh(std::move(all), SourceLocation{});
  return Mesh(std::move(all), rank_map_given(device_ids), SourceLocation{});
}

std::string mesh_code(const Mesh& mesh) {
  const bool is_plain = mesh.is_root() && mesh.rank() > 0 && !mesh.has_explicit_axes() &&
                        mesh == Mesh({mesh.axes().begin(), mesh.axes().end()}, SourceLocation{});
  if (!is_plain) return cat("Mesh(", quoted(mesh.to_string()), ")");
  std::string code;
  for (const MeshAxis& axis : mesh.axes())
    code += cat(code.empty() ? "Mesh({" : ", ", quoted(axis.name), ": ", axis.size);
  return code + "})";
}

}  // namespace meshard::python
