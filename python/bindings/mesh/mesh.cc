// Meshes.
#include "meshard/mesh/mesh.h"

#include <nanobind/stl/variant.h>

#include <algorithm>
#include <optional>

#include "meshard/base/error.h"
#include "meshard/mesh/concatenate.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/submeshes.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/values.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

using MeshClass = nb::class_<Mesh>;
using Coordinate = std::variant<std::int64_t, std::vector<std::int64_t>>;

constexpr SourceLocation kNoLine;  // errors get the line of Python (guarded.cc)

RankOrder rank_order_named(std::string_view name) {
  for (RankOrder order : {RankOrder::kMesh, RankOrder::kSorted})
    if (to_string(order) == name) return order;
  throw_invalid({}, "[mesh] the order of a group is 'mesh' or 'sorted', not ", quoted(name));
}

Uneven uneven_named(std::string_view name) {
  for (Uneven uneven : {Uneven::kAllow, Uneven::kError})
    if (to_string(uneven) == name) return uneven;
  throw_invalid({}, "[mesh] uneven sizes are 'allow' or 'error', not ", quoted(name));
}

using Renames = std::vector<std::pair<std::string, std::string>>;
Renames renames_of(const nb::handle& given) {
  Renames pairs;
  nb::object items = nb::borrow(given);
  if (nb::isinstance<nb::dict>(given)) items = given.attr("items")();
  if (!nb::try_cast(nb::list(items), pairs))
    throw_invalid({}, "[rename] new names are a dictionary from old to new names; got ",
                  repr_text(given));
  return pairs;
}

void bind_construction(MeshClass& type) {
  type.def(
          "__init__",
          [](Mesh* self, nb::object axes, nb::object names, nb::object device_ids,
             const std::vector<std::string>& explicit_axes, const std::string& device_type,
             std::string_view uneven) {
            Mesh made =
                mesh_of(std::move(axes), std::move(names), std::move(device_ids), explicit_axes);
            if (!device_type.empty()) made = made.with_device_type(device_type, kNoLine);
            if (uneven_named(uneven) != Uneven::kAllow)
              made = made.with_uneven(uneven_named(uneven), kNoLine);
            new (self) Mesh(std::move(made));
          },
          nb::arg("axes").none() = nb::none(), nb::arg("names").none() = nb::none(),
          nb::arg("device_ids").none() = nb::none(), nb::kw_only(),
          nb::arg("explicit") = nb::tuple(), nb::arg("device_type") = "",
          nb::arg("uneven") = "allow")
      .def_static(
          "from_group",
          [](const DeviceGroup& group, std::string name) {
            return Mesh::from_group(group, std::move(name), kNoLine);
          },
          nb::arg("group"), nb::arg("name"),
          "The one-axis mesh of a group's devices. Its root is that of the mesh that the group "
          "belongs to.\n\nError: invalid axis name; the group combines explicit and other axes.")
      .def_static(
          "from_groups",
          [](const std::vector<DeviceGroup>& groups, const std::vector<std::string>& names) {
            return Mesh::from_groups(groups, names, kNoLine);
          },
          nb::arg("groups"), nb::arg("names"),
          "The mesh of all devices that several groups of one device span, with one axis per "
          "group.\n\nError: no group; the number of names is not the number of groups; groups "
          "with different roots, without a common device, or along the same axes.")
      .def_static(
          "concatenate",
          [](const std::vector<Mesh>& meshes) { return concatenate(meshes, kNoLine); },
          nb::arg("meshes"),
          "A mesh with the axes of all given meshes, in order: recombines slices of one mesh in "
          "any order. It has the root of the first mesh.\n\nError: no mesh; different devices, "
          "device types or rules for uneven sizes; axes that overlap; a name that occurs twice "
          "(except for axes of size 1).");
}

void bind_axes_of(MeshClass& type) {
  type.def_prop_ro(
          "axes",
          [](const Mesh& mesh) {
            nb::list axes;
            for (const MeshAxis& axis : mesh.axes()) axes.append(nb::cast(axis));
            return nb::typed<nb::tuple, MeshAxis, nb::ellipsis>(nb::tuple(axes));
          },
          "The axes.")
      .def_prop_ro(
          "axis_names",
          [](const Mesh& mesh) {
            nb::list names;
            for (const MeshAxis& axis : mesh.axes()) names.append(axis.name);
            return nb::typed<nb::tuple, nb::str, nb::ellipsis>(nb::tuple(names));
          },
          "The names of the axes.")
      .def_prop_ro("ndim", &Mesh::rank, "The number of axes.")
      .def_prop_ro("size", &Mesh::size, "The number of positions: the product of the axis sizes.")
      .def_prop_ro(
          "shape", [](const Mesh& mesh) { return Dimensions(mesh.shape()); }, "The axis sizes.")
      .def_prop_ro("rows", &Mesh::rows, "The number of rows: 1 except for slices.")
      .def("__contains__",
           [](const Mesh& mesh, std::string_view name) { return mesh.find_axis(name).has_value(); })
      .def("axis_index", &Mesh::axis_index, nb::arg("name"),
           "The index of the axis with this name.\n\nError: not an axis of this mesh.")
      .def("find_axis", &Mesh::find_axis, nb::arg("name"),
           "The index of the axis with this name, or None.")
      .def(
          "named", [](const Mesh& mesh, const AxisList& axes) { return mesh.named(axes, kNoLine); },
          nb::arg("axes"),
          "The axes, with names for those given by position.\n\nError: the mesh "
          "has fewer axes.")
      .def(
          "axis_size",
          [](const Mesh& mesh, const AxisList& axis) {
            if (axis.size() != 1)
              throw_invalid({}, "[mesh] axis_size is of one axis; got ", axis.size());
            return mesh.axis_size(axis[0]);
          },
          nb::arg("axis"),
          "The size of an axis or a sub-axis.\n\nError: unknown axis; the sub-axis does not divide "
          "its axis.")
      .def_prop_ro(
          "layout", &Mesh::layout,
          "The layout from axis coordinates to the root's rank map, with one mode per axis.")
      .def(
          "axis_layout",
          [](const Mesh& mesh, std::size_t axis) {
            if (axis >= mesh.rank()) throw_invalid({}, "[mesh] no axis ", axis, " in ", mesh);
            return mesh.axis_layout(axis);
          },
          nb::arg("axis"), "The mode of the layout of the axis with this index.")
      .def_prop_ro("has_explicit_axes", &Mesh::has_explicit_axes, "True if an axis is explicit.")
      .def_prop_ro(
          "device_type", &Mesh::device_type,
          "The platform of the devices: `cpu`, `cuda`, `tpu`; empty: the default platform.")
      .def_prop_ro(
          "uneven", [](const Mesh& mesh) { return to_string(mesh.uneven()); },
          "How marking treats a dimension that the axes do not divide evenly: `allow` or `error`.")
      .def(
          "axes_in_base",
          [](const Mesh& mesh, const AxisList& axes) { return mesh.axes_in_base(axes).value(); },
          nb::arg("axes"),
          "The axes and sub-axes of `base` that some axes of this mesh correspond to.\n\nError: "
          "unknown axis; they do not correspond to whole axes or sub-axes of the base.");
}

void bind_devices_of(MeshClass& type) {
  type.def_prop_ro(
          "rank_map", &Mesh::rank_map,
          "The device at each position of the root; of the first row if there are several.")
      .def("ranks", &Mesh::ranks, nb::arg("row"),
           "The device at each position of a row.\n\nError: no such row.")
      .def_prop_ro(
          "device_ids", [](const Mesh& mesh) { return mesh.device_ids().rank_map(); },
          "All device ids, row by row, in mesh order: a sequence, computed on demand.")
      .def(
          "device_id",
          [](const Mesh& mesh, const Coordinate& at,
             std::optional<std::int64_t> seen_from) -> std::optional<std::int64_t> {
            if (const auto* coordinate = std::get_if<std::vector<std::int64_t>>(&at))
              return seen_from ? mesh.device_id(IntView(*coordinate), *seen_from)
                               : mesh.device_id(IntView(*coordinate));
            const std::int64_t position = std::get<std::int64_t>(at);
            if (!seen_from) return mesh.device_id(position);
            const IntVector coordinate = mesh.coordinate_at(position);
            return mesh.device_id(coordinate, *seen_from);
          },
          nb::arg("at"), nb::arg("seen_from").none() = nb::none(),
          "The device at a position, or at a coordinate, which has one index per axis. In a mesh "
          "of several rows, `seen_from` is a device of the row meant; then None if that device is "
          "not in the mesh.\n\nError: not in the mesh; the mesh has several rows, and `seen_from` "
          "is not given.")
      .def("position", &Mesh::position, nb::arg("device_id"),
           "The position of a device; None if it is not in the mesh.")
      .def("coordinate", &Mesh::coordinate, nb::arg("device_id"),
           "The index of a device along every axis; None if it is not in the mesh.")
      .def("row", &Mesh::row, nb::arg("device_id"),
           "The row that a device is in; None if it is not in the mesh.")
      .def("coordinate_at", &Mesh::coordinate_at, nb::arg("position"),
           "The index of a position along every axis.\n\nError: not a position of the mesh.")
      .def("same_devices", &Mesh::same_devices, nb::arg("other"),
           "True if both have the same devices of one platform, in any order.")
      .def("groups", &Mesh::groups, nb::arg("axes"),
           "The groups of devices that differ only along `axes`, over all rows; the first axis is "
           "the most significant.\n\nError: unknown or repeated axis.")
      .def("group", &Mesh::group, nb::arg("axes"), nb::arg("device_id"),
           "The group that a device is in; None if it is not in the mesh.\n\nError: unknown or "
           "repeated axis.")
      .def(
          "local_rank",
          [](const Mesh& mesh, const AxisList& axes, std::int64_t device_id,
             std::string_view order) {
            return mesh.local_rank(axes, device_id, rank_order_named(order));
          },
          nb::arg("axes"), nb::arg("device_id"), nb::arg("order") = "mesh",
          "The index of a device in its group, in mesh order or `sorted` by device id; None if it "
          "is not in the mesh.\n\nError: unknown or repeated axis.");
}

void bind_derivation(MeshClass& type) {
  auto slice = [](const Mesh& mesh, const AxisNames& names) { return mesh.slice(names, kNoLine); };
  const char* slice_doc =
      "Some axes, in any order; the others become rows. Names are axes of this mesh or, if it "
      "equals its root, names that flatten has registered there.\n\nError: unknown name; axes that "
      "overlap.";
  type.attr("__iter__") = nb::none();
  type.def("slice", slice, nb::arg("names"), slice_doc)
      .def("__getitem__", slice, nb::arg("names"), slice_doc)
      .def(
          "permute",
          [](const Mesh& mesh, const AxisNames& names) { return mesh.permute(names, kNoLine); },
          nb::arg("names"), "Reorders all axes.\n\nError: the names are not those of this mesh.")
      .def(
          "flatten",
          [](const Mesh& mesh, std::string name) { return mesh.flatten(std::move(name), kNoLine); },
          nb::arg("name") = "",
          "Merges all axes into one, registered at the root under `name`; \"\" joins the names "
          "with _.\n\nError: the name is an axis of the root, or is registered for another layout; "
          "invalid axis name.")
      .def(
          "flatten",
          [](const Mesh& mesh, const AxisNames& names, std::string name) {
            return mesh.flatten(names, std::move(name), kNoLine);
          },
          nb::arg("names"), nb::arg("name") = "",
          "Merges some axes into one, at the position of the first of them; the other axes remain.")
      .def(
          "unflatten",
          [](const Mesh& mesh, std::string_view axis, nb::handle parts) {
            return mesh.unflatten(axis, axes_given(parts, nb::none()), kNoLine);
          },
          nb::arg("axis"), nb::arg("parts"),
          "Splits an axis into several: `mesh.unflatten('data', {'outer': 2, 'inner': 4})`."
          "\n\nError: unknown axis; the product of the sizes differs from the axis size; a "
          "repeated name; an axis of several modes cannot be split there.")
      .def(
          "reshape",
          [](const Mesh& mesh, nb::handle axes, nb::handle names) {
            return mesh.reshape(axes_given(axes, names), kNoLine);
          },
          nb::arg("axes"), nb::arg("names").none() = nb::none(),
          "Replaces the axes by others over the same positions.\n\nError: as unflatten.")
      .def(
          "rename",
          [](const Mesh& mesh, nb::handle names) {
            return mesh.rename(renames_of(names), kNoLine);
          },
          nb::arg("names"),
          "Renames axes: `mesh.rename({'data': 'batch'})`.\n\nError: unknown old name; a repeated "
          "name.")
      .def(
          "squeeze",
          [](const Mesh& mesh, const std::optional<AxisNames>& names) {
            return names ? mesh.squeeze(*names, kNoLine) : mesh.squeeze();
          },
          nb::arg("names").none() = nb::none(),
          "Removes all axes of size 1, or the named ones.\n\nError: a named axis has another size.")
      .def(
          "unsqueeze",
          [](const Mesh& mesh, std::string name, std::size_t place) {
            return mesh.unsqueeze(std::move(name), place, kNoLine);
          },
          nb::arg("name"), nb::arg("place"),
          "Adds an axis of size 1 before axis `place`.\n\nError: the name exists; no such place.")
      .def(
          "submesh",
          [](const Mesh& mesh, const AxisNames& names, std::int64_t device_id) {
            return mesh.submesh(names, device_id, kNoLine);
          },
          nb::arg("names"), nb::arg("device_id"),
          "The mesh of the devices that differ from `device_id` only along these axes; None if it "
          "is not in the mesh. Its root and its groups are those of this mesh.\n\nError: unknown "
          "axis.")
      .def(
          "submeshes",
          [](const Mesh& mesh, const AxisNames& names) { return mesh.submeshes(names, kNoLine); },
          nb::arg("names"),
          "All submeshes along these axes, each made when it is accessed; for a slice, those of "
          "all its rows.\n\nError: unknown axis.")
      .def(
          "as_root", [](const Mesh& mesh) { return mesh.as_root(kNoLine); },
          "The same axes and devices as a new root.\n\nError: the mesh has several rows.")
      .def(
          "with_axis_kind",
          [](const Mesh& mesh, const AxisNames& names, std::string_view kind) {
            return mesh.with_axis_kind(names, axis_kind_named(kind), kNoLine);
          },
          nb::arg("names"), nb::arg("kind"),
          "as_root with another kind, `auto` or `explicit`, for some axes.\n\nError: unknown axis; "
          "the mesh has several rows.")
      .def(
          "with_device_type",
          [](const Mesh& mesh, std::string device_type) {
            return mesh.with_device_type(std::move(device_type), kNoLine);
          },
          nb::arg("device_type"),
          "as_root for devices of this platform; empty: the default platform.")
      .def(
          "with_uneven",
          [](const Mesh& mesh, std::string_view uneven) {
            return mesh.with_uneven(uneven_named(uneven), kNoLine);
          },
          nb::arg("uneven"),
          "as_root with another rule, `allow` or `error`, for dimensions that the axes do not "
          "divide evenly.");
}

void bind_roots(MeshClass& type) {
  type.def_prop_ro("root", &Mesh::root,
                   "The mesh that this one is derived from; itself for a root.")
      .def_prop_ro("is_root", &Mesh::is_root, "True unless it is derived from another mesh.")
      .def_prop_ro("base", &Mesh::base,
                   "The root, or the submesh that this mesh is a view of: its axes cover its "
                   "devices compactly.")
      .def_prop_ro("is_base", &Mesh::is_base, "True if it is its own base.")
      .def_prop_ro(
          "flattened",
          [](const Mesh& mesh) {
            nb::dict layouts;
            for (auto& [name, layout] : mesh.flattened()) layouts[nb::str(name.c_str())] = layout;
            return layouts;
          },
          nb::sig("def flattened(self) -> dict[str, Layout]"),
          "The names that flatten has registered at the root, with their layouts.")
      .def("same_root", &Mesh::same_root, nb::arg("other"),
           "True if both are derived from one root object.")
      .def("is_submesh_of", &Mesh::is_submesh_of, nb::arg("other"),
           "True if each row of this mesh is within a row of `other`, and both have the same root.")
      .def("is_same_object", &Mesh::is_same_object, nb::arg("other"),
           "True if both are copies of one mesh object.")
      .def(
          "to_string",
          [](const Mesh& mesh, bool with_root) {
            return mesh.to_string(with_root ? MeshText::kWithRoot : MeshText::kValue);
          },
          nb::arg("with_root") = false,
          "The text of the mesh, as str prints it; with the root also the device and root that a "
          "submesh was taken from, and the flattened names of the root.");
}

}  // namespace

void bind_mesh(nb::module_& module) {
  bind_axes(module);
  bind_rank_map(module);
  MeshClass type(module, "Mesh",
                 R"(Named axes over devices: an immutable value.

    Mesh({"data": 2, "model": 4})                    # devices 0..7
    Mesh({"data": 2, "model": 2}, [4, 5, 6, 7])      # any devices, in any order
    Mesh((2, 4), ("data", "model"))                  # sizes and names
    Mesh(numpy.arange(8).reshape(2, 4), ("x", "y"))  # device ids in the shape of the mesh
    Mesh("mesh<data=2, model=4>")                    # its text
    Mesh(layout, ("x", "y"))                         # a layout into the rank map
    Mesh(jax_mesh)                                   # a jax.sharding.Mesh or AbstractMesh

`explicit` names the axes over which the program, not the compiler, decides how tensors are
sharded. Positions 0 to size-1 enumerate the axes in row-major order. A mesh made from sizes is
a root; the operations derive meshes that share its devices. A slice, which has dropped axes,
has several rows.

    >>> mesh = ms.Mesh({"data": 2, "model": 4})
    >>> mesh.size, mesh.shape, mesh.axis_names
    (8, (2, 4), ('data', 'model'))
    >>> print(ms.Mesh({"data": 2, "model": 2}, [4, 5, 6, 7]))
    mesh<data=2, model=2; devices=[4,5,6,7]>

Error: an invalid or repeated axis name; a size below 1; the number of ids is not the product of
the sizes; an id is negative or repeated.)");
  bind_equality(type);
  bind_copies(type);
  type.def("__str__", [](const Mesh& mesh) { return mesh.to_string(); })
      .def("__getstate__", [](const Mesh& mesh) { return mesh.to_string(MeshText::kWithRoot); })
      .def("__setstate__", [](Mesh& self, const std::string& text) {
        new (&self) Mesh(Mesh::parse(text).value());
      });
  type.def_static(
      "parse", [](const std::string& text) { return Mesh::parse(text).value(); }, nb::arg("text"),
      "The mesh with this text, as str and to_string print it.");
  bind_construction(type);
  bind_axes_of(type);
  bind_devices_of(type);
  bind_derivation(type);
  bind_roots(type);
  type.def("__hash__", python_hash<Mesh>).def("__repr__", mesh_code);
  bind_device_groups(module);
  bind_global_mesh(module);
}

}  // namespace meshard::python
