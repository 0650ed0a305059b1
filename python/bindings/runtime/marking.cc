// Sharding annotations and manual regions.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/forbid_collectives.h"
#include "meshard/mesh/global_mesh.h"
#include "meshard/ops/composite/manual.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/sharding/dtensor_placements.h"
#include "meshard/sharding/sharding_spec.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/transforms/python_function.h"
#include "python/bindings/transforms/pytree.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

template <class... Where>
Tensor mark(const Operand& x, const Where&... where) {
  CallerLine line;
  if (!x.in().tensor) throw nb::type_error("a number has no sharding: make a tensor of it first");
  Unlocked unlocked;
  return mark_sharding(In(*x.in().tensor, line.where()), where...);
}

template <class... Where>
void bind_mark(nb::module_& module, const std::convertible_to<nb::arg> auto&... names) {
  module.def("mark_sharding", mark<Where...>, nb::arg("x"), names...);
}

// Python's `with` for a scope of this thread.
struct StrictScope {
  StrictScope() = default;
  StrictScope(const StrictScope&) = delete;
  StrictScope& operator=(const StrictScope&) = delete;
  std::vector<std::unique_ptr<StrictSpecs>> entered;
};

// ForbidCollectives as Python's `with`.
struct ForbidScope {
  ForbidScope(std::vector<std::string> names) : axes(std::move(names)) {}  // NOLINT: for nanobind
  ForbidScope(const ForbidScope&) = delete;
  ForbidScope& operator=(const ForbidScope&) = delete;
  std::vector<std::string> axes;
  std::vector<std::unique_ptr<ForbidCollectives>> entered;
};

// --- manual regions ----------------------------------------------------------------------------

// The specs that Python worked out, one for each tensor.
SpecList spec_list(nb::handle list) { return nb::cast<std::vector<PartitionSpec>>(list); }

// Runs a function on the local values of `args`, a tuple.
// @param specs_of returns the out_specs of a result, one for each tensor
// @param shapes_of returns the full shapes of a result's tensors; None: multiples of local sizes
nb::object call_manual(nb::object function, nb::handle args, const Mesh& mesh,
                       const std::vector<PartitionSpec>& in_specs, nb::object specs_of,
                       nb::object shapes_of, const std::vector<std::string>& axes,
                       const std::optional<PadValue>& pad) {
  CallerLine line;
  PyTree given = PyTree::of(args, "argument ");
  std::vector<Tensor>& tensors = given.leaves();
  ManualOptions options;
  options.axes = axes;
  options.pad = pad;
  internal::ManualRegion region =
      internal::ManualRegion(mesh, in_specs, SpecList(PartitionSpec()), options, line.where())
          .called_with(tensors);
  std::vector<Tensor> locals;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    locals.push_back(
        region.enter(tensors[i], region.in_spec(i, tensors.size(), i, tensors.size())));

  nb::object returned;
  PyTree result;
  {
    internal::ManualScope scope(region.place());
    internal::EffectScope effects;
    UserCode own_lines;
    returned = function(*PyTree(std::move(locals), given.shape()).object());
    result = PyTree::of(returned, "result");
    effects.attach(result.leaves());
  }
  if (!shapes_of.is_none()) options.out_shapes = nb::cast<std::vector<Shape>>(shapes_of(returned));
  internal::ManualRegion out =
      internal::ManualRegion(mesh, in_specs, spec_list(specs_of(returned)), options, line.where())
          .called_with(tensors);
  std::vector<Tensor> full;
  for (std::size_t i = 0; i < result.leaves().size(); ++i)
    full.push_back(out.leave(result.leaves()[i], i, result.leaves().size()));
  return PyTree(std::move(full), result.shape()).object();
}

}  // namespace

void bind_marking(nb::module_& module) {
  bind_mark<Sharding>(module, nb::arg("sharding"));
  bind_mark<ShardingSpec>(module, nb::arg("spec"));
  bind_mark<PartitionSpec>(module, nb::arg("spec"));
  bind_mark<Mesh, PartitionSpec>(module, nb::arg("mesh"), nb::arg("spec"));
  bind_mark<Mesh, Placements>(module, nb::arg("mesh"), nb::arg("placements"));

  nb::class_<StrictScope>(module, "StrictSpecs",
                          "While a `with` block of it runs, mark_sharding in this thread requires "
                          "a spec entry for every dimension.")
      .def(nb::init<>())
      .def(
          "__enter__",
          [](StrictScope& scope) -> StrictScope& {
            scope.entered.push_back(std::make_unique<StrictSpecs>());
            return scope;
          },
          nb::rv_policy::reference)
      .def("__exit__", [](StrictScope& scope, nb::args) { scope.entered.pop_back(); });

  nb::class_<ForbidScope>(module, "ForbidCollectives")
      .def(nb::init<std::vector<std::string>>(), nb::arg("axes"))
      .def(
          "__enter__",
          [](ForbidScope& scope) -> ForbidScope& {
            CallerLine line;
            scope.entered.push_back(std::make_unique<ForbidCollectives>(scope.axes, line.where()));
            return scope;
          },
          nb::rv_policy::reference)
      .def("__exit__", [](ForbidScope& scope, nb::args) { scope.entered.pop_back(); });

  module.def("call_manual", call_manual, nb::arg("function"), nb::arg("args"), nb::arg("mesh"),
             nb::arg("in_specs"), nb::arg("specs_of"), nb::arg("shapes_of").none(), nb::arg("axes"),
             nb::arg("pad").none());

  module.def(
      "abstract_tensor",
      [](Shape shape, DType dtype) {
        CallerLine line;
        return abstract_tensor(std::move(shape), dtype, line.where());
      },
      nb::arg("shape"), nb::arg("dtype"));
  module.def(
      "abstract_tensor",
      [](Shape shape, DType dtype, const Sharding& sharding) {
        CallerLine line;
        return abstract_tensor({dtype, std::move(shape)}, sharding, line.where());
      },
      nb::arg("shape"), nb::arg("dtype"), nb::arg("sharding"));
  module.def("is_abstract", is_abstract, nb::arg("x"));
}

}  // namespace meshard::python
