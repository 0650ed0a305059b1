// Axes of meshes, and sets of them.
#include <optional>

#include "meshard/base/error.h"
#include "meshard/mesh/axis_set.h"
#include "meshard/mesh/mesh.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/values.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

void bind_axis_ref(nb::module_& module) {
  nb::class_<AxisRef> type(
      module, "AxisRef",
      "A mesh axis, `AxisRef('x')`, its position in the mesh, `AxisRef(0)`, or a part of an axis: "
      "`AxisRef('x', 2, 4)` splits an axis of n row-major into (2, 4, n / 8) and is the middle "
      "part. "
      "A whole axis equals its name.");
  bind_text(
      type, [](const AxisRef& axis) { return axis.to_string(); },
      [](const std::string& text) { return AxisRef::parse(text).value(); });
  type.def(
          "__init__",
          [](AxisRef* self, nb::object axis, std::int64_t pre_size, std::int64_t size) {
            AxisList loaded;
            if (!load_axis(axis.ptr(), loaded)) throw_not_axes(axis);
            if (size == 0 && pre_size == 1) {
              new (self) AxisRef(std::move(loaded[0]));
              return;
            }
            if (loaded[0].is_position() || !loaded[0].is_whole())
              throw_invalid({}, "[axes] a sub-axis needs the name of its axis");
            if (size < 1 || pre_size < 1)
              throw_invalid({}, "[axes] the sizes of a sub-axis are at least 1; got (", pre_size,
                            ")", size);
            new (self) AxisRef(loaded[0].name, pre_size, size);
          },
          nb::arg("axis"), nb::arg("pre_size") = 1, nb::arg("size") = 0)
      .def(
          "__eq__",
          [](const AxisRef& a, nb::handle b) -> nb::object {
            AxisList other;
            if (!load_axis(b.ptr(), other)) return nb::borrow(Py_NotImplemented);
            return nb::bool_(a == other[0]);
          },
          nb::arg("other").none(), nb::is_operator())
      .def("__hash__",
           [](const AxisRef& axis) {
             if (axis.is_whole()) return nb::hash(axis_object(axis));
             return python_hash(axis);
           })
      .def("__repr__",
           [](const AxisRef& axis) {
             return axis.is_whole() ? cat("AxisRef(", axis_code(axis), ")") : axis_code(axis);
           })
      .def_ro("name", &AxisRef::name, "The name of the axis; empty for a position.")
      .def_ro("pre_size", &AxisRef::pre_size, "The product of the sizes to the left of a sub-axis.")
      .def_ro("size", &AxisRef::size, "The size of a sub-axis; 0 for a whole axis.")
      .def_prop_ro(
          "position",
          [](const AxisRef& axis) -> std::optional<std::int64_t> {
            if (axis.is_position()) return axis.position;
            return std::nullopt;
          },
          "The position of the axis if it is given by that, or None.")
      .def_prop_ro("is_whole", &AxisRef::is_whole, "True unless this is a sub-axis.")
      .def("contains", &AxisRef::contains, nb::arg("other"),
           "True if every part of `other` is a part of this.")
      .def("overlaps", &AxisRef::overlaps, nb::arg("other"),
           "True if the two have a part in common.")
      .def("is_prefix_of", &AxisRef::is_prefix_of, nb::arg("other"),
           "True if this is the most significant part of `other`, or all of it.")
      .def_static(
          "parse", [](const std::string& text) { return AxisRef::parse(text).value(); },
          nb::arg("text"), "The axis with this text, as str prints it.");
}

void bind_mesh_axis(nb::module_& module) {
  nb::class_<MeshAxis> type(
      module, "MeshAxis",
      "One axis of a mesh: its name, its size, and who decides how tensors "
      "are sharded over it: the compiler, `auto`, or the program, `explicit`.");
  bind_equality(type);
  bind_copies(type);
  type.def(
          "__init__",
          [](MeshAxis* self, std::string name, std::int64_t size, std::string_view kind) {
            new (self) MeshAxis{std::move(name), size, axis_kind_named(kind)};
          },
          nb::arg("name"), nb::arg("size") = 1, nb::arg("kind") = "auto")
      .def("__getstate__",
           [](const MeshAxis& axis) {
             return nb::make_tuple(axis.name, axis.size, std::string(to_string(axis.kind)));
           })
      .def("__setstate__",
           [](MeshAxis& axis, const std::tuple<std::string, std::int64_t, std::string>& state) {
             new (&axis) MeshAxis{std::get<0>(state), std::get<1>(state),
                                  axis_kind_named(std::get<2>(state))};
           })
      .def("__hash__",
           [](const MeshAxis& axis) {
             return nb::hash(nb::make_tuple(axis.name, axis.size, axis.kind == AxisKind::kAuto));
           })
      .def("__str__", &MeshAxis::to_string)
      .def("__repr__",
           [](const MeshAxis& axis) {
             return cat("MeshAxis(", quoted(axis.name), ", ", axis.size,
                        axis.kind == AxisKind::kAuto ? ")" : ", 'explicit')");
           })
      .def_ro("name", &MeshAxis::name, "The name.")
      .def_ro("size", &MeshAxis::size, "The number of devices along the axis.")
      .def_prop_ro(
          "kind", [](const MeshAxis& axis) { return to_string(axis.kind); },
          "`auto` or `explicit`.");
}

void bind_axis_set(nb::module_& module) {
  nb::class_<AxisSet> type(module, "AxisSet",
                           "A set of whole axes of one mesh. It does not hold the mesh.");
  bind_equality(type);
  bind_copies(type);
  type.def(
          "__init__",
          [](AxisSet* self, const Mesh& mesh, const AxisList& axes) {
            new (self) AxisSet(mesh, axes, SourceLocation{});
          },
          nb::arg("mesh"), nb::arg("axes") = nb::tuple())
      .def_static(
          "all", [](const Mesh& mesh) { return AxisSet::all(mesh, SourceLocation{}); },
          nb::arg("mesh"), "All axes of the mesh.")
      .def("of", &AxisSet::of, nb::arg("mesh"), "The axes, in mesh order.")
      .def("__bool__", [](const AxisSet& set) { return !set.empty(); })
      .def(
          "__contains__",
          [](const AxisSet& set, std::size_t axis) { return axis < 64 && set.contains(axis); },
          nb::arg("axis"))
      .def(
          "issuperset",
          [](const AxisSet& set, const AxisSet& other) { return set.contains(other); },
          nb::arg("other"), "True if each axis of `other` is in this set.")
      .def(
          "__or__", [](const AxisSet& a, const AxisSet& b) { return a | b; }, nb::is_operator())
      .def(
          "__and__", [](const AxisSet& a, const AxisSet& b) { return a & b; }, nb::is_operator())
      .def(
          "__sub__", [](const AxisSet& a, const AxisSet& b) { return a - b; }, nb::is_operator())
      .def("to_string", &AxisSet::to_string, nb::arg("mesh"), "`{\"x\", \"y\"}`.");
  type.attr("__hash__") = nb::none();
}

}  // namespace

AxisKind axis_kind_named(std::string_view name) {
  for (AxisKind kind : {AxisKind::kAuto, AxisKind::kExplicit})
    if (to_string(kind) == name) return kind;
  throw_invalid({}, "[mesh] an axis is 'auto' or 'explicit', not ", quoted(name));
}

void bind_axes(nb::module_& module) {
  bind_axis_ref(module);
  bind_mesh_axis(module);
  bind_axis_set(module);
}

}  // namespace meshard::python
