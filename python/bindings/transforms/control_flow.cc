// Loops and branches over Python functions.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "meshard/core.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/transforms/python_function.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

nb::object scanned(nb::object function, const nb::object& init, const PyTree& xs, bool reverse,
                   std::optional<std::int64_t> length, std::int64_t unroll) {
  CallerLine line;
  PythonFunction f(std::move(function));
  auto step = [&](const PyTree& carry, const PyTree& slice) {
    return f.pair("the function given to scan must return (carry, y)", carry, slice);
  };
  auto [carry, ys] =
      scan(step, PyTree::of_carry(init), xs,
           ScanOptions{.reverse = reverse, .length = length, .unroll = unroll}, line.where());
  return nb::make_tuple(carry.object(), ys.object());
}

PyTree while_looped(nb::object condition, nb::object body, const nb::object& init) {
  CallerLine line;
  PythonFunction test(std::move(condition)), step(std::move(body));
  auto is_on = [&](const PyTree& carry) {
    PyTree result = test(carry);
    if (result.leaves().size() != 1)
      throw nb::type_error("the condition of while_loop must return one tensor");
    return result.leaves()[0];
  };
  return while_loop(is_on, step, PyTree::of_carry(init), line.where());
}

PyTree for_looped(const Operand& low, const Operand& high, nb::object body,
                  const nb::object& object) {
  CallerLine line;
  PythonFunction f(std::move(body));
  const PyTree init = PyTree::of_carry(object);
  auto step = [&](const Tensor& i, const PyTree& carry) {
    return f(PyTree(PyTree::of(tensor_object(i))), carry);
  };
  if (!low.is_tensor() && !high.is_tensor())
    return fori_loop(low.in().scalar.integer, high.in().scalar.integer, step, init, line.where());
  return fori_loop(low.in(), high.in(), step, init);
}

PyTree branched(const Operand& index, const std::vector<nb::object>& functions,
                const PyTree& arguments, bool is_predicate) {
  CallerLine line;
  const char* op = is_predicate ? "cond" : "switch_case";
  std::vector<PythonFunction> all;
  for (const nb::object& function : functions) all.emplace_back(function);
  std::optional<PyTree> result;
  internal::BranchForm form{.op = op, .where = line.where()};
  std::tuple<PyTree> given(arguments);
  std::vector<BodyFunction> branches;
  for (const PythonFunction& f : all)
    branches.push_back(internal::branch_function(f, given, result, form));
  const Tensor chosen = is_predicate ? internal::case_of(index.in()) : Tensor();
  std::vector<Tensor> results = switch_tensors(is_predicate ? In(chosen, line.where()) : index.in(),
                                               branches, arguments.leaves(), line.where());
  return structure::with_tensors(std::move(*result), results);
}

}  // namespace

void bind_control_flow(nb::module_& module) {
  module.def("scan", scanned, nb::arg("function"), nb::arg("init").none(), nb::arg("xs").none(),
             nb::arg("reverse"), nb::arg("length").none(), nb::arg("unroll"));
  module.def("while_loop", while_looped);
  module.def("fori_loop", for_looped);
  module.def("branch", branched);
}

}  // namespace meshard::python
