// Meshes and their axes.
#include "meshard/mesh/mesh.h"

#include <optional>

#include "meshard/base/error.h"
#include "meshard/mesh/axis_set.h"
#include "meshard/mesh/builders.h"
#include "python/bindings/bindings.h"
#include "python/bindings/casters.h"
#include "python/bindings/host_arrays.h"
#include "python/bindings/mesh_casters.h"
#include "python/bindings/mesh_parts.h"
#include "python/bindings/source_line.h"
#include "python/bindings/values.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

std::string repr_text(nb::handle object) {
  return nb::cast<std::string>(nb::object(nb::repr(object)));
}

std::int64_t integer_of(nb::handle object, std::string_view what) {
  std::int64_t number = 0;
  if (!load_integer(object.ptr(), number))
    throw_invalid({}, "[mesh] ", what, " is an integer; got ", repr_text(object));
  return number;
}

std::string name_of(nb::handle object) {
  if (!nb::isinstance<nb::str>(object))
    throw_invalid({}, "[mesh] the name of an axis is a string; got ", repr_text(object));
  return nb::cast<std::string>(object);
}

std::vector<MeshAxis> axes_of_dict(const nb::dict& sizes) {
  std::vector<MeshAxis> axes;
  for (auto [name, size] : sizes)
    axes.push_back({name_of(name), integer_of(size, "the size of an axis")});
  return axes;
}

bool is_list(nb::handle object) {
  return nb::isinstance<nb::tuple>(object) || nb::isinstance<nb::list>(object);
}

// All integers of a nested list or of an array, row-major; `shape` becomes its shape.
void read_nested(nb::handle object, std::size_t depth, std::vector<std::int64_t>& ids,
                 IntVector& shape) {
  if (!is_list(object)) {
    if (depth != shape.size())
      throw_invalid({}, "[mesh] the rows of the device ids differ in length");
    ids.push_back(integer_of(object, "a device id"));
    return;
  }
  const auto size = static_cast<std::int64_t>(nb::len(object));
  if (depth == shape.size() && ids.empty()) shape.push_back(size);
  if (depth >= shape.size() || shape[depth] != size)
    throw_invalid({}, "[mesh] the rows of the device ids differ in length");
  for (nb::handle row : object) read_nested(row, depth + 1, ids, shape);
}

std::vector<std::int64_t> device_list(nb::handle object) {
  std::vector<std::int64_t> ids;
  if (nb::hasattr(object, "tolist")) {
    nb::object list = object.attr("reshape")(-1).attr("tolist")();
    return device_list(list);
  }
  for (nb::handle id : object) ids.push_back(integer_of(id, "a device id"));
  return ids;
}

MaybeNames names_given(nb::handle names) {
  if (names.is_none()) return std::nullopt;
  if (nb::isinstance<nb::str>(names)) return std::vector<std::string>{name_of(names)};
  std::vector<std::string> all;
  for (nb::handle name : names) all.push_back(name_of(name));
  return all;
}

bool holds_integers(nb::handle object) {
  std::int64_t number = 0;
  if (is_numpy_array(object.ptr())) return true;
  if (!is_list(object) || nb::len(object) == 0) return false;
  return load_integer(nb::object(object[0]).ptr(), number);
}

// Whether the first argument lists device ids, in the shape of the mesh: an array, or lists in a
// list.
bool is_device_array(nb::handle object) {
  if (is_numpy_array(object.ptr())) return true;
  return is_list(object) && nb::len(object) > 0 && is_list(nb::object(object[0])) &&
         (nb::len(nb::object(object[0])) == 0 ||
          !nb::isinstance<nb::str>(nb::object(object[0])[0]));
}

std::vector<MeshAxis> axes_given(nb::handle given, nb::handle names) {
  std::vector<MeshAxis> axes;
  if (nb::isinstance<nb::dict>(given)) {
    if (!names.is_none())
      throw_invalid({}, "[mesh] a dictionary of sizes has the names of the axes already");
    return axes_of_dict(nb::borrow<nb::dict>(given));
  }
  Dimensions sizes;
  if (load_dimensions(given.ptr(), sizes) &&
      (!is_list(given) || nb::len(given) > 0 || !names.is_none()))
    return mesh_axes(sizes, names_given(names), caller_line());
  if (!is_list(given))
    throw_invalid({},
                  "[mesh] the axes are a dictionary of sizes, a tuple of sizes, a list of "
                  "(name, size) pairs or an array of device ids; got ",
                  nb::cast<std::string>(nb::type_name(given.type())));
  for (nb::handle axis : given) {
    if (nb::isinstance<MeshAxis>(axis)) {
      axes.push_back(nb::cast<MeshAxis>(axis));
    } else if (is_list(axis) && nb::len(axis) == 2) {
      axes.push_back(
          {name_of(nb::object(axis[0])), integer_of(nb::object(axis[1]), "the size of an axis")});
    } else {
      throw_invalid({}, "[mesh] an axis is a (name, size) pair or a MeshAxis; got ",
                    repr_text(axis));
    }
  }
  return axes;
}

Mesh mesh_of(nb::object axes, nb::object names, nb::object device_ids,
             const std::vector<std::string>& explicit_axes) {
  const SourceLocation where = caller_line();
  if (axes.is_none()) axes = nb::tuple();
  if (nb::isinstance<nb::str>(axes)) return Mesh::parse(nb::cast<std::string>(axes)).value();
  if (device_ids.is_none() && holds_integers(names)) {
    device_ids = std::move(names);
    names = nb::none();
  }
  std::vector<MeshAxis> all;
  if (is_device_array(axes)) {
    if (!device_ids.is_none()) throw_invalid(where, "[mesh] device ids are given twice");
    std::vector<std::int64_t> ids;
    IntVector shape;
    nb::object list = is_numpy_array(axes.ptr()) ? nb::object(axes.attr("tolist")()) : axes;
    read_nested(list, 0, ids, shape);
    all = mesh_axes(shape, names_given(names), where);
    device_ids = nb::cast(ids);
  } else {
    all = axes_given(axes, names);
  }
  for (const std::string& name : explicit_axes) {
    bool found = false;
    for (MeshAxis& axis : all)
      if (axis.name == name) {
        axis.kind = AxisKind::kExplicit;
        found = true;
      }
    if (!found) throw_invalid(where, "[mesh] the explicit axis ", quoted(name), " is not an axis");
  }
  if (device_ids.is_none()) return Mesh(std::move(all), where);
  return Mesh(std::move(all), device_list(device_ids), where);
}

// Evaluable: with sizes only if that says all.
std::string mesh_code(const Mesh& mesh) {
  const bool is_plain = mesh.is_root() && mesh.rank() > 0 && !mesh.has_explicit_axes() &&
                        mesh == Mesh({mesh.axes().begin(), mesh.axes().end()});
  if (!is_plain) return cat("Mesh(", quoted(mesh.to_string()), ")");
  std::string code = "Mesh({";
  for (const MeshAxis& axis : mesh.axes())
    code += cat(&axis == &mesh.axes()[0] ? "" : ", ", quoted(axis.name), ": ", axis.size);
  return code + "})";
}

}  // namespace

void bind_mesh(nb::module_& module) {
  bind_axes(module);
  nb::class_<Mesh> type(module, "Mesh");
  bind_value(type);
  type.def(
          "__init__",
          [](Mesh* self, nb::object axes, nb::object names, nb::object device_ids,
             const std::vector<std::string>& explicit_axes) {
            new (self) Mesh(
                mesh_of(std::move(axes), std::move(names), std::move(device_ids), explicit_axes));
          },
          nb::arg("axes").none() = nb::none(), nb::arg("names").none() = nb::none(),
          nb::arg("device_ids").none() = nb::none(), nb::kw_only(),
          nb::arg("explicit") = nb::tuple())
      .def("__hash__", python_hash<Mesh>)
      .def("__repr__", mesh_code)
      .def_prop_ro("axis_names",
                   [](const Mesh& mesh) {
                     nb::list names;
                     for (const MeshAxis& each : mesh.axes()) names.append(each.name);
                     return nb::tuple(names);
                   })
      .def_prop_ro("shape", [](const Mesh& mesh) { return Dimensions(mesh.shape()); })
      .def_prop_ro("size", &Mesh::size)
      .def_prop_ro("ndim", &Mesh::rank);
}

}  // namespace meshard::python
