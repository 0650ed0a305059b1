// Derivatives and batches of Python functions. The Python side passes functions of one structure.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "meshard/core.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/transforms/python_function.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

const Tensor& single(const PyTree& tree, const char* what) {
  if (tree.leaves().size() != 1) throw nb::type_error(what);
  return tree.leaves()[0];
}

// (f(inputs), gradients); f returns (loss, auxiliary).
nb::object value_and_gradient(nb::object function, const ArgumentTree& inputs) {
  CallerLine line;
  PythonFunction f(std::move(function));
  auto loss_and_rest = [&](const PyTree& now) -> std::pair<Tensor, PyTree> {
    auto [loss, rest] = f.pair("the function to differentiate must return (loss, auxiliary)", now);
    return {single(loss, "the loss must be one tensor"), std::move(rest)};
  };
  auto [result, gradients] = value_and_grad<0>(loss_and_rest)(static_cast<const PyTree&>(inputs));
  return nb::make_tuple(nb::make_tuple(tensor_object(result.first), result.second.object()),
                        gradients.object());
}

nb::object vjp_of(nb::object function, const ArgumentTree& inputs) {
  CallerLine line;
  auto [result, pullback] =
      vjp(PythonFunction(std::move(function)), static_cast<const PyTree&>(inputs));
  auto pull = [pullback = std::move(pullback)](const PyTree& cotangent) {
    CallerLine inner;
    return std::get<0>(pullback(cotangent));
  };
  return nb::make_tuple(result.object(), nb::cpp_function(std::move(pull)));
}

nb::object linearize_at(nb::object function, const ArgumentTree& inputs) {
  CallerLine line;
  auto [result, push] =
      linearize(PythonFunction(std::move(function)), static_cast<const PyTree&>(inputs));
  auto pushed = [push = std::move(push)](const PyTree& tangents) {
    CallerLine inner;
    return push(tangents);
  };
  return nb::make_tuple(result.object(), nb::cpp_function(std::move(pushed)));
}

// The blocks [result][argument] of the Jacobian of a function of one structure.
nb::object jacobian_blocks(nb::object function, const ArgumentTree& inputs, bool forward) {
  CallerLine line;
  internal::KeepOperandsScope keep;
  std::vector<Tensor> fresh;
  PyTree replaced =
      internal::make_inputs(static_cast<const PyTree&>(inputs), 0, fresh, line.where());
  PyTree result =
      internal::apply_rolled(PythonFunction(std::move(function)), std::tuple<PyTree>(replaced));
  auto blocks = forward ? internal::forward_blocks(result.leaves(), fresh, line.where())
                        : internal::reverse_blocks(result.leaves(), fresh, line.where());
  nb::list rows;
  for (auto& row : blocks) {
    nb::list columns;
    for (Tensor& block : row) columns.append(tensor_object(std::move(block)));
    rows.append(columns);
  }
  return nb::make_tuple(result.object(), rows);
}

std::vector<BatchAxis> batch_axes(const std::vector<std::optional<std::int64_t>>& axes) {
  std::vector<BatchAxis> list;
  for (const auto& axis : axes) list.push_back(axis ? BatchAxis(*axis) : BatchAxis(none));
  return list;
}

// One axis for each tensor of the arguments. `out_axes` gets the result, and returns one for each
// of its tensors.
PyTree vmapped(nb::object function, const PyTree& inputs,
               const std::vector<std::optional<std::int64_t>>& in_axes,
               const std::function<std::vector<std::optional<std::int64_t>>(nb::object)>& out_axes,
               std::optional<std::int64_t> axis_size, std::string mesh_axis) {
  CallerLine line;
  PythonFunction f(std::move(function));
  VmapOptions options;
  if (!in_axes.empty()) options.in_axes = batch_axes(in_axes);
  options.axis_size = axis_size;
  options.mesh_axis = std::move(mesh_axis);
  auto with_axes = [&](const PyTree& now) {
    PyTree result = f(now);
    std::vector<BatchAxis> axes = batch_axes(out_axes(result.object()));
    if (!axes.empty()) options.out_axes = std::move(axes);
    return result;
  };
  internal::VmapCall call(options, 1, inputs.leaves().size(), line.where());
  std::vector<Tensor> members;
  structure::for_each(
      inputs,
      [&](const Tensor& leaf, const std::string& path) {
        members.push_back(call.enter(leaf, 0, path));
      },
      "argument");
  PyTree result = [&] {
    internal::KeepOperandsScope keep;
    return internal::apply_rolled(with_axes,
                                  std::tuple<PyTree>(structure::with_tensors(inputs, members)));
  }();
  return structure::with_tensors(result, call.leave(result.leaves()));
}

PyTree checkpointed(nb::object function, const PyTree& inputs, const std::string& policy,
                    const std::vector<std::string>& names) {
  CallerLine line;
  CheckpointPolicy keep = policy == "dots"         ? CheckpointPolicy::dots()
                          : policy == "everything" ? CheckpointPolicy::everything()
                          : policy == "named"      ? CheckpointPolicy::named(names)
                                                   : CheckpointPolicy::nothing();
  return checkpoint(PythonFunction(std::move(function)), keep, line.where())(inputs);
}

PyTree with_custom_vjp(nb::object forward, nb::object backward, const PyTree& inputs) {
  CallerLine line;
  auto run = [f = PythonFunction(std::move(forward))](const PyTree& now) {
    return f.pair("the forward function of custom_vjp must return (result, residuals)", now);
  };
  // The cotangents of the arguments are the one argument of the C++ function.
  auto back = [f = PythonFunction(std::move(backward))](const PyTree& residuals,
                                                        const PyTree& cotangent) {
    return std::tuple<PyTree>(f(residuals, cotangent));
  };
  return custom_vjp(run, back)(inputs);
}

PyTree behind_backward_barrier(nb::object function, const PyTree& inputs) {
  CallerLine line;
  return apply_backward_optimization_barrier(PythonFunction(std::move(function)))(inputs);
}

PyTree behind_barrier(const PyTree& values) {
  CallerLine line;
  return structure::with_tensors(values, optimization_barrier(values.leaves(), line.where()));
}

}  // namespace

void bind_transforms(nb::module_& module) {
  module.def("value_and_grad", value_and_gradient);
  module.def("vjp", vjp_of);
  module.def("linearize", linearize_at);
  module.def("jacobian", jacobian_blocks);
  module.def(
      "vmap",
      [](nb::object function, const ArgumentTree& inputs, nb::object in_axes, nb::object out_axes,
         std::optional<std::int64_t> axis_size, std::string mesh_axis) {
        using Axes = std::vector<std::optional<std::int64_t>>;
        auto axes_of = [&](nb::object result) { return nb::cast<Axes>(out_axes(result)); };
        return vmapped(std::move(function), inputs, nb::cast<Axes>(in_axes), axes_of, axis_size,
                       std::move(mesh_axis));
      },
      nb::arg("function"), nb::arg("inputs").none(), nb::arg("in_axes"), nb::arg("out_axes"),
      nb::arg("axis_size").none(), nb::arg("mesh_axis"));
  module.def("checkpoint", checkpointed);
  module.def("custom_vjp", with_custom_vjp);
  module.def("apply_backward_optimization_barrier", behind_backward_barrier);
  module.def("optimization_barrier", behind_barrier, nb::arg("values").none());
}

}  // namespace meshard::python
