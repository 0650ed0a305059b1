// Partition specs and shardings.
#include "meshard/sharding/sharding.h"

#include "python/bindings/bindings.h"
#include "python/bindings/casters.h"
#include "python/bindings/mesh_casters.h"
#include "python/bindings/mesh_parts.h"
#include "python/bindings/source_line.h"
#include "python/bindings/values.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

std::string sharding_code(const Sharding& sharding) {
  std::string code =
      cat("Sharding(", nb::cast<std::string>(nb::object(nb::repr(nb::cast(sharding.mesh())))), ", ",
          spec_code(sharding.spec()));
  if (!sharding.replicated_axes().empty())
    code += ", replicated=" + axes_code(sharding.replicated_axes());
  if (!sharding.unreduced_axes().empty())
    code += ", unreduced=" + axes_code(sharding.unreduced_axes());
  return code + ")";
}

void bind_spec(nb::module_& module) {
  nb::class_<UnconstrainedType> open(module, "Unconstrained", "The type of UNCONSTRAINED.");
  open.attr("__module__") = "meshard";
  open.def("__repr__", [](const UnconstrainedType&) { return "UNCONSTRAINED"; })
      .def("__reduce__", [](const UnconstrainedType&) { return "UNCONSTRAINED"; });
  module.attr("UNCONSTRAINED") = unconstrained_object();

  nb::class_<PartitionSpec> type(module, "PartitionSpec");
  bind_value(type);
  type.def("__init__",
           [](PartitionSpec* self, const nb::args& dimensions) {
             PartitionSpec spec;
             if (!load_spec(dimensions.ptr(), spec)) throw_not_spec(dimensions);
             new (self) PartitionSpec(std::move(spec));
           })
      .def("__hash__", python_hash<PartitionSpec>)
      .def("__repr__", spec_code)
      .def("__len__", &PartitionSpec::size)
      .def("__getitem__", [](const PartitionSpec& spec, Py_ssize_t i) {
        const auto size = static_cast<Py_ssize_t>(spec.size());
        if (i < -size || i >= size) throw nb::index_error("dimension out of range");
        return dimension_object(spec[static_cast<std::size_t>(i < 0 ? i + size : i)]);
      });
  type.attr("UNCONSTRAINED") = unconstrained_object();
}

}  // namespace

void bind_sharding(nb::module_& module) {
  bind_spec(module);
  nb::class_<Sharding> type(module, "Sharding");
  bind_value(type);
  type.def(
          "__init__",
          [](Sharding* self, const Mesh& mesh, const PartitionSpec& spec,
             std::optional<std::size_t> ndim, const AxisList& replicated,
             const AxisList& unreduced) {
            const SourceLocation where = caller_line();
            Sharding made = ndim ? Sharding(mesh, spec, *ndim, where) : Sharding(mesh, spec, where);
            if (!replicated.empty()) made = made.with_replicated(replicated, where);
            if (!unreduced.empty()) made = made.with_unreduced(unreduced, where);
            new (self) Sharding(std::move(made));
          },
          nb::arg("mesh"), nb::arg("spec"), nb::arg("ndim").none() = nb::none(), nb::kw_only(),
          nb::arg("replicated") = nb::tuple(), nb::arg("unreduced") = nb::tuple())
      .def("__hash__", python_hash<Sharding>)
      .def("__repr__", sharding_code)
      .def_prop_ro("mesh", &Sharding::mesh)
      .def_prop_ro("spec", &Sharding::spec)
      .def_prop_ro("ndim", &Sharding::rank);
  bind_placements(module);
}

}  // namespace meshard::python
