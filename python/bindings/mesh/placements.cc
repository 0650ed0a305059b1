// Shardings in DTensor's form.
#include <nanobind/stl/variant.h>

#include "meshard/base/error.h"
#include "meshard/sharding/dtensor_placements.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/values.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/mesh/mesh_parts.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

std::string placement_code(const Placement& placement) {
  if (const auto* shard = std::get_if<Shard>(&placement)) return cat("Shard(", shard->dim, ")");
  if (const auto* partial = std::get_if<Partial>(&placement))
    return partial->reduce_op == "sum" ? "Partial()"
                                       : cat("Partial(", quoted(partial->reduce_op), ")");
  return "Replicate()";
}

// The same number for equal placements.
std::size_t placement_hash(const Placement& placement) {
  return std::hash<std::string>()(to_string(placement));
}

template <class Kind>
void bind_placement(nb::class_<Kind>& type) {
  bind_equality(type);
  bind_text(
      type, [](const Kind& placement) { return placement.to_string(); },
      [](const std::string& text) {
        return std::get<Kind>(Placements::parse(cat("(", text, ",)")).value()[0]);
      });
  type.def("__hash__", [](const Kind& it) { return placement_hash(it) >> 1; })
      .def("__repr__", [](const Kind& it) { return placement_code(it); });
}

std::vector<Placement> placements_given(const nb::args& given) {
  nb::object list = given;
  if (given.size() == 1 &&
      (nb::isinstance<nb::list>(given[0]) || nb::isinstance<nb::tuple>(given[0])))
    list = nb::object(given[0]);
  std::vector<Placement> all;
  for (nb::handle each : list) {
    Placement placement;
    if (!nb::try_cast(each, placement))
      throw_invalid({}, "[placements] a placement is Shard(dim), Replicate() or Partial(); got ",
                    repr_text(each));
    all.push_back(std::move(placement));
  }
  return all;
}

}  // namespace

void bind_placements(nb::module_& module) {
  nb::class_<Shard> shard(
      module, "Shard",
      "A placement: the mesh axis splits dimension `dim`; a negative one counts from the last.");
  bind_placement(shard);
  shard.def(nb::init<std::int64_t>(), nb::arg("dim"))
      .def_ro("dim", &Shard::dim, "The dimension that is split.");

  nb::class_<Replicate> replicate(
      module, "Replicate", "A placement: all devices along the mesh axis hold the same data.");
  bind_placement(replicate);
  replicate.def(nb::init<>());

  nb::class_<Partial> partial(
      module, "Partial",
      "A placement: each device along the mesh axis holds a partial result, not reduced yet. "
      "`sum`, `max` and `min` are unreduced axes of a Sharding.");
  bind_placement(partial);
  partial.def(nb::init<std::string>(), nb::arg("reduce_op") = "sum")
      .def_ro("reduce_op", &Partial::reduce_op, "The reduction that makes the whole value.");

  nb::class_<Placements> type(
      module, "Placements",
      "A placement for each axis of a mesh, in the mesh's order: DTensor's form of a sharding. "
      "`Placements(Shard(0), Replicate())`, or of a list.\n\n"
      "Axes that split the same dimension split it in mesh order, the first the most significant.");
  bind_value(type);
  bind_items(
      type, [](const Placements& all, std::size_t i) { return all[i]; },
      "The placement for an axis.");
  type.def("__init__",
           [](Placements* self, const nb::args& placements) {
             new (self) Placements(placements_given(placements));
           })
      .def("__hash__",
           [](const Placements& all) {
             return static_cast<Py_hash_t>(std::hash<std::string>()(all.to_string()) >> 1);
           })
      .def("__repr__",
           [](const Placements& all) {
             std::string code = "Placements(";
             for (std::size_t i = 0; i < all.size(); ++i)
               code += cat(i ? ", " : "", placement_code(all[i]));
             return code + ")";
           })
      .def_static(
          "of", [](const Sharding& sharding) { return Placements::of(sharding).value(); },
          nb::arg("sharding"),
          "The placements of a sharding, for the axes of its mesh. They do not record open "
          "dimensions and explicitly replicated axes.\n\n"
          "Error: a sub-axis splits a dimension or is unreduced, or axes split a dimension in "
          "another order than the mesh's.")
      .def(
          "sharding",
          [](const Placements& all, const Mesh& mesh, std::size_t ndim) {
            return all.sharding(mesh, ndim, SourceLocation{});
          },
          nb::arg("mesh"), nb::arg("ndim"),
          "The sharding of a tensor of `ndim` dimensions over this mesh.\n\n"
          "Error: the number of placements is not the number of axes; a dimension out of range; a "
          "Partial with a reduction other than `sum`.");
}

}  // namespace meshard::python
