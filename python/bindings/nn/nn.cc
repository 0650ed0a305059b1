// Initializers, rules for shardings, and the creation of parameters.
#include "python/bindings/nn/nn.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "meshard/core.h"
#include "python/bindings/arrays/tensor_argument.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/ops/op_arguments.h"
#include "python/bindings/transforms/python_function.h"

namespace nb = nanobind;

namespace meshard::python {

Tensor returned_tensor(nb::handle result, const char* what) {
  if (const Tensor* tensor = tensor_in(result.ptr())) return *tensor;
  if (std::optional<Tensor> value = tensor_of_value(result.ptr(), caller_line())) return *value;
  throw nb::type_error(what);
}

nn::Initializer initializer_of(nb::object object) {
  BoundInitializer* bound = nullptr;
  if (nb::try_cast(object, bound) && bound) return bound->function;
  if (!PyCallable_Check(object.ptr())) throw nb::type_error("an initializer must be a function");
  return [function = share(std::move(object))](const Tensor& key, const Shape& shape,
                                               const nn::Fans& fans, DType dtype) {
    Locked locked;
    UserCode own_lines;
    nb::object result = nb::handle(function.get())(tensor_object(key), shape,
                                                   nb::make_tuple(fans.in, fans.out), dtype);
    return returned_tensor(result, "an initializer must return a tensor");
  };
}

namespace {

using FanPair = std::pair<std::int64_t, std::int64_t>;

// The enumerator whose name in Python is `name`; `names` are those of all, in their order.
template <class Enum>
Enum of_name(const char* what, const std::string& name, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  throw nb::value_error(
      cat("the ", what, " is one of ", join(names, ", "), ", not \"", name, "\"").c_str());
}

void bind_initializers(nb::module_& nn_module) {
  nb::class_<BoundInitializer>(nn_module, "Initializer",
                               "Computes the initial value of a parameter.\n\n"
                               "`initializer(key, shape, fans, dtype)`: any function of these "
                               "arguments that returns a tensor can take its place. `fans` is "
                               "(inputs per output, outputs per input) of a weight.")
      .def(
          "__call__",
          [](const BoundInitializer& self, const Operand& key, const Shape& shape, FanPair fans,
             DType dtype) {
            CallerLine line;
            return tensor_object(
                self.function(tensor_argument(key), shape, {fans.first, fans.second}, dtype));
          },
          nb::arg("key"), nb::arg("shape"), nb::arg("fans") = nb::make_tuple(1, 1),
          nb::arg("dtype") = DType::f32, "The values.")
      .def("__repr__", [](const BoundInitializer& self) { return "nn.init." + self.text; });
  nb::module_ init = nn_module.def_submodule("init", "Initial values of parameters.");
  auto plain = [&](const char* name, nn::Initializer (*make)(), const char* text) {
    init.def(
        name,
        [make, name] {
          return BoundInitializer{make(), cat(name, "()")};
        },
        text);
  };
  auto of_number = [&](const char* name, nn::Initializer (*make)(double), const char* parameter,
                       const char* text) {
    init.def(
        name,
        [make, name](double number) {
          return BoundInitializer{make(number), cat(name, "(", number, ")")};
        },
        nb::arg(parameter), text);
  };
  plain("zeros", nn::init::zeros, "Zeros.");
  plain("ones", nn::init::ones, "Ones.");
  of_number("constant", nn::init::constant, "value", "One value everywhere.");
  of_number("normal", nn::init::normal, "deviation", "Normal with mean 0.");
  of_number("uniform", nn::init::uniform, "limit", "Uniform in [-limit, limit).");
  init.def(
      "truncated_normal",
      [](double deviation, double low, double high) {
        return BoundInitializer{nn::init::truncated_normal(deviation, low, high, caller_line()),
                                cat("truncated_normal(", deviation, ", ", low, ", ", high, ")")};
      },
      nb::arg("deviation"), nb::arg("low") = -2.0, nb::arg("high") = 2.0,
      "Normal with mean 0, truncated at `low` and `high` standard deviations. `deviation` is that "
      "of the normal before truncation.\n\n"
      "Raises InvalidArgumentError unless low < high.");
  init.def(
      "variance_scaling",
      [](double scale, const std::string& fan, const std::string& distribution) {
        return BoundInitializer{
            nn::init::variance_scaling(
                scale,
                of_name<nn::init::Fan>("fan", fan, {"in", "out", "average", "geometric_mean"}),
                of_name<nn::init::Distribution>("distribution", distribution,
                                                {"truncated_normal", "normal", "uniform"}),
                caller_line()),
            cat("variance_scaling(", scale, ", \"", fan, "\", \"", distribution, "\")")};
      },
      nb::arg("scale"), nb::arg("fan"), nb::arg("distribution"),
      "Mean 0 and variance scale / fan. `fan` is \"in\" (inputs per output), \"out\" (outputs per "
      "input), \"average\" or \"geometric_mean\"; `distribution` is \"truncated_normal\" (at two "
      "standard deviations, with the variance after truncation), \"normal\" or \"uniform\". With a "
      "truncated normal, scales 1 and 2 and \"in\" are the lecun_normal and he_normal of JAX and "
      "flax, scale 1 and \"average\" their glorot_normal; these of this module are not truncated."
      "\n\nRaises InvalidArgumentError unless the scale is positive.");
  init.def(
      "delta_orthogonal",
      [](double scale) {
        return BoundInitializer{nn::init::delta_orthogonal(scale),
                                cat("delta_orthogonal(", scale, ")")};
      },
      nb::arg("scale") = 1.0,
      "Kernels of convolutions, [window..., inputs, outputs], that are zero but for an orthogonal "
      "matrix in the middle of the window, times `scale` (Xiao et al., 2018).\n\n"
      "Raises InvalidArgumentError when it is called for a rank that is not 3 to 5, or for more "
      "inputs than outputs.");
  plain("glorot_uniform", nn::init::glorot_uniform,
        "Uniform with variance 2 / (inputs + outputs) (Glorot and Bengio, 2010; also called "
        "Xavier).");
  plain("glorot_normal", nn::init::glorot_normal,
        "Normal with variance 2 / (inputs + outputs) (Glorot and Bengio, 2010; also called "
        "Xavier).");
  plain("he_uniform", nn::init::he_uniform,
        "Uniform with variance 2 / inputs, for relu (He et al., 2015; also called Kaiming).");
  plain("he_normal", nn::init::he_normal,
        "Normal with variance 2 / inputs, for relu (He et al., 2015; also called Kaiming).");
  plain("lecun_uniform", nn::init::lecun_uniform,
        "Uniform with variance 1 / inputs (LeCun et al., 1998).");
  plain("lecun_normal", nn::init::lecun_normal,
        "Normal with variance 1 / inputs (LeCun et al., 1998).");
  init.def(
      "orthogonal",
      [](double scale, std::int64_t column_axis) {
        return BoundInitializer{nn::init::orthogonal(scale, column_axis),
                                cat("orthogonal(", scale, ", ", column_axis, ")")};
      },
      nb::arg("scale") = 1.0, nb::arg("column_axis") = -1,
      "Uniformly distributed matrices with orthonormal columns (or rows, if there are more "
      "columns), times `scale` (Saxe, McClelland and Ganguli, 2014). `column_axis` is the "
      "dimension of the columns; all others together are the rows.\n\n"
      "Raises InvalidArgumentError when it is called with a rank below 2 or without such a "
      "dimension.");
}

// --- rules and parameters ----------------------------------------------------------------------

nn::AxisRules rules_of(const Mesh& mesh, const nb::dict& rules) {
  std::vector<nn::AxisRules::Rule> list;
  for (auto [name, axes] : rules) {
    auto& rule = list.emplace_back(nb::cast<std::string>(name), DimensionSpec());
    if (!load_dimension(axes.ptr(), rule.second))
      throw nb::type_error(
          cat("the rule for ", rule.first, " is neither an axis nor a sequence of axes").c_str());
  }
  for (const nn::AxisRules::Rule& rule : list)  // so that the error has the caller's line
    Sharding(mesh, P(rule.second), caller_line());
  return nn::AxisRules(mesh, std::move(list));
}

// The constructor's arguments.
nb::tuple parts_of_rules(const nn::AxisRules& rules) {
  nb::dict all;
  for (const auto& [name, axes] : rules.rules()) all[name.c_str()] = dimension_object(axes);
  return nb::make_tuple(rules.mesh(), all);
}

void bind_maker(nb::module_& nn_module) {
  nb::class_<nn::AxisRules>(
      nn_module, "AxisRules",
      "A mesh, and the mesh axes that split each named dimension.\n\n"
      "Layers name the dimensions of their parameters (`\"heads\"`, `\"hidden\"`; listed at each "
      "layer's `make_` function), so that another sharding of a model needs only other rules.\n\n"
      "A name without a rule is looked up among the axes of the mesh; if there is no such axis, "
      "the "
      "dimension is not split. If several dimensions of a tensor would be split over the same "
      "axis, "
      "only the first one is. Without a mesh nothing is split, marked or placed.\n\n"
      "    mesh = Mesh({\"data\": 2, \"model\": 4})\n"
      "    rules = nn.AxisRules(mesh, {\"batch\": \"data\", \"heads\": \"model\", \"hidden\": "
      "\"model\"})\n"
      "    rules.spec(P(\"embed\", \"heads\", None))  # P(None, \"model\", None)\n\n"
      "Raises NotFoundError if a rule names an axis that the mesh does not have.")
      .def(
          "__init__",
          [](nn::AxisRules* self, const std::optional<Mesh>& mesh, const nb::dict& rules) {
            if (!mesh && nb::len(rules) > 0)
              throw nb::value_error("rules need a mesh whose axes they name");
            new (self) nn::AxisRules(mesh ? rules_of(*mesh, rules) : nn::AxisRules());
          },
          nb::arg("mesh").none() = nb::none(), nb::arg("rules") = nb::dict())
      .def(
          "__eq__",
          [](const nn::AxisRules& self, nb::object other) {
            nn::AxisRules* rules = nullptr;
            return nb::try_cast(other, rules) && rules && self.mesh() == rules->mesh() &&
                   self.rules() == rules->rules();
          },
          nb::arg().none())
      .def("__hash__",
           [](const nn::AxisRules& self) {
             nb::tuple parts = parts_of_rules(self);
             return nb::hash(nb::make_tuple(parts[0], nb::repr(parts[1])));
           })
      .def("__repr__",
           [](const nn::AxisRules& self) {
             if (!self.mesh()) return std::string("nn.AxisRules()");
             nb::tuple parts = parts_of_rules(self);
             return cat("nn.AxisRules(", nb::cast<std::string>(nb::repr(parts[0])), ", ",
                        nb::cast<std::string>(nb::repr(parts[1])), ")");
           })
      .def("__reduce__",
           [](nb::handle self) {
             return nb::make_tuple(self.type(), parts_of_rules(nb::cast<nn::AxisRules&>(self)));
           })
      .def_prop_ro(
          "mesh", [](const nn::AxisRules& self) { return self.mesh(); },
          "The mesh; None without one.")
      .def_prop_ro(
          "rules", [](const nn::AxisRules& self) { return nb::object(parts_of_rules(self)[1]); },
          "A dict of the rules.")
      .def(
          "spec",
          [](const nn::AxisRules& self, const PartitionSpec& names) { return self.spec(names); },
          nb::arg("names"),
          "The partition spec of a tensor whose dimensions are named by `names`, in place of axes.")
      .def(
          "sharding",
          [](const nn::AxisRules& self, const PartitionSpec& names) {
            return self.sharding(names);
          },
          nb::arg("names"), "The sharding of such a tensor; None without a mesh.")
      .def(
          "mark",
          [](const nn::AxisRules& self, const Operand& x, const PartitionSpec& names) {
            CallerLine line;
            const Tensor& tensor = tensor_argument(x);
            Unlocked unlocked;  // it may be placed now
            return self.mark(In(tensor, line.where()), names);
          },
          nb::arg("x"), nb::arg("names"),
          "Marks a tensor with that sharding: for activations between layers. Without a mesh, the "
          "tensor is unchanged.");
  nb::class_<nn::Maker>(nn_module, "Maker",
                        "Creates the parameters that a model's `make_` functions request: see "
                        "create() and describe(). Parameter i uses key number i derived from the "
                        "seed's key.")
      .def(
          "__call__",
          [](nn::Maker& self, const Shape& shape, const PartitionSpec& names,
             nb::object initializer, FanPair fans) {
            CallerLine line;
            nn::Initializer function = initializer_of(std::move(initializer));
            Unlocked unlocked;
            return self(shape, names, function, {fans.first, fans.second});
          },
          nb::arg("shape"), nb::arg("names"), nb::arg("initializer"),
          nb::arg("fans") = nb::make_tuple(1, 1),
          "Creates a parameter of this shape; `names` are the names of its dimensions, and `fans` "
          "(inputs per output, outputs per input). It is computed on the devices of the mesh, each "
          "device computing its own part; nothing is transferred from the host.")
      .def_prop_ro("rules", &nn::Maker::rules, "The AxisRules.")
      .def("_check_rules", [](const nn::Maker& self) { self.check_rules(caller_line()); })
      .def_prop_ro("num_made", &nn::Maker::num_made, "The number of parameters created by now.");
  nn_module.def("maker_of_values", [](const nn::AxisRules& rules, std::int64_t seed, DType dtype) {
    CallerLine line;
    return nn::Maker(rules, random::key(seed), dtype);
  });
  nn_module.def("maker_of_types",
                [](const nn::AxisRules& rules, DType dtype) { return nn::Maker(rules, dtype); });
  nn_module.def(
      "make_layers", [](nb::handle make, std::int64_t count, const nb::object& make_layer) {
        CallerLine line;
        auto& maker = nb::cast<nn::Maker&>(make);
        nb::object counting = nb::cast(maker.counting());
        make_layer(counting);
        nn::Maker::Stacking stacking(maker, count, nb::cast<nn::Maker&>(counting), line.where());
        return make_layer(make);
      });
  nn_module.def("num_layers", [](const PyTree& stacked) {
    CallerLine line;
    return nn::internal::num_layers(stacked.leaves(), line.where());
  });
  nn_module.def("layer_of", [](const PyTree& stacked, std::int64_t layer) {
    CallerLine line;
    return PyTree(nn::internal::layer_of(stacked.leaves(), layer, line.where()), stacked.shape());
  });
  nn_module.def("stack_layers", [](const std::vector<nb::object>& layers) {
    CallerLine line;
    std::vector<PyTree> all;
    for (const nb::object& layer : layers) all.push_back(PyTree::of(layer, "layer"));
    return stack_structures(all, line.where());
  });
}

}  // namespace

void bind_nn(nb::module_& module) {
  nb::module_ nn_module = module.def_submodule("nn", "Layers.");
  bind_initializers(nn_module);
  bind_maker(nn_module);
  bind_layers(nn_module);
}

}  // namespace meshard::python
