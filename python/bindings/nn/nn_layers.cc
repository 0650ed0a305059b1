// The layers: functions that make their parameters, and functions of the parameters and an input.
// The classes of the parameters are in python/meshard/nn/layers.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "meshard/core.h"
#include "python/bindings/arrays/tensor_argument.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/nn/nn.h"
#include "python/bindings/ops/op_arguments.h"
#include "python/bindings/transforms/python_function.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

nn::Activation activation_of(nb::object object) {
  if (!PyCallable_Check(object.ptr())) throw nb::type_error("an activation must be a function");
  return [function = share(std::move(object))](const Tensor& x) {
    Locked locked;
    UserCode own_lines;
    return returned_tensor(nb::handle(function.get())(tensor_object(x)),
                           "an activation must return a tensor");
  };
}

// The options of a call of attention: causal, theta of the rotation, qk_norm, scale, left_window,
// right_window, mask, bias, soft_cap, read.
using AttendingArguments =
    std::tuple<std::optional<bool>, std::optional<double>, std::string, std::optional<double>,
               std::optional<std::int64_t>, std::optional<std::int64_t>, nb::object, nb::object,
               std::optional<double>, std::int64_t>;

Tensor optional_tensor(const nb::object& given, const char* what) {
  return given.is_none() ? Tensor() : returned_tensor(given, what);
}

nn::Attending attending(const AttendingArguments& given) {
  const auto& [causal, theta, qk_norm, scale, left, right, mask, bias, soft_cap, read] = given;
  nn::Attending how{.causal = causal,
                    .qk_norm = qk_norm == "rms" ? nn::QkNorm::kRms : nn::QkNorm::kLayer,
                    .scale = scale,
                    .left_window = left,
                    .right_window = right,
                    .mask = optional_tensor(mask, "the mask must be a tensor"),
                    .bias = optional_tensor(bias, "the bias must be a tensor"),
                    .soft_cap = soft_cap,
                    .read = read};
  if (qk_norm != "rms" && qk_norm != "layer")
    throw nb::value_error(cat("qk_norm is \"layer\" or \"rms\", not \"", qk_norm, "\"").c_str());
  if (theta) how.rotary = nn::Rotary{*theta};
  return how;
}

void bind_makers(nb::module_& nn_module) {
  nn_module.def("make_linear",
                [](nn::Maker& make, std::int64_t in, std::int64_t out, std::string in_name,
                   std::string out_name, bool bias, nb::object weight) {
                  nn::LinearOptions options{.in = std::move(in_name),
                                            .out = std::move(out_name),
                                            .bias = bias,
                                            .weight = initializer_of(std::move(weight))};
                  return made_unlocked([&] { return nn::make_linear(make, in, out, options); });
                });
  nn_module.def("make_embedding", [](nn::Maker& make, std::int64_t words, std::int64_t width,
                                     nb::object table) {
    nn::Initializer values = initializer_of(std::move(table));
    return made_unlocked([&] { return nn::make_embedding(make, words, width, values); });
  });
  nn_module.def("make_layer_norm", [](nn::Maker& make, std::int64_t width) {
    return made_unlocked([&] { return nn::make_layer_norm(make, width); });
  });
  nn_module.def("make_rms_norm", [](nn::Maker& make, std::int64_t width) {
    return made_unlocked([&] { return nn::make_rms_norm(make, width); });
  });
  nn_module.def("make_mlp", [](nn::Maker& make, std::int64_t width, std::int64_t hidden, bool bias,
                               nb::object up, nb::object down) {
    nn::MlpOptions options{bias, initializer_of(std::move(up)), initializer_of(std::move(down))};
    return made_unlocked([&] { return nn::make_mlp(make, width, hidden, options); });
  });
  nn_module.def("make_gated_mlp", [](nn::Maker& make, std::int64_t width, std::int64_t hidden,
                                     bool bias, nb::object up, nb::object down) {
    nn::MlpOptions options{bias, initializer_of(std::move(up)), initializer_of(std::move(down))};
    return made_unlocked([&] { return nn::make_gated_mlp(make, width, hidden, options); });
  });
  nn_module.def("make_attention",
                [](nn::Maker& make, std::int64_t width, std::int64_t heads, std::int64_t key_heads,
                   std::int64_t size, bool bias, std::int64_t memory_width, bool qk_norm,
                   nb::object weight, nb::object out) {
                  nn::AttentionSizes options{.heads = heads,
                                             .key_heads = key_heads,
                                             .size = size,
                                             .bias = bias,
                                             .memory_width = memory_width,
                                             .qk_norm = qk_norm,
                                             .weight = initializer_of(std::move(weight)),
                                             .out = initializer_of(std::move(out))};
                  return made_unlocked([&] { return nn::make_attention(make, width, options); });
                });
  nn_module.def("make_cache", [](const nn::AxisRules& rules, const nn::Attention& params,
                                 std::int64_t batch, std::int64_t length) {
    return made_unlocked([&] { return nn::make_cache(rules, params, batch, length); });
  });
  nn_module.def("make_mixture", [](nn::Maker& make, std::int64_t width, std::int64_t hidden,
                                   std::int64_t experts, nb::object weight) {
    nn::Initializer values = initializer_of(std::move(weight));
    return made_unlocked([&] { return nn::make_mixture(make, width, hidden, experts, values); });
  });
}

void bind_applications(nb::module_& nn_module) {
  nn_module.def("linear", [](const nn::Linear& params, const Operand& x) {
    CallerLine line;
    return tensor_object(nn::linear(params, tensor_argument(x)));
  });
  nn_module.def("embedding", [](const nn::Embedding& params, const Operand& tokens) {
    CallerLine line;
    return tensor_object(nn::embedding(params, tensor_argument(tokens)));
  });
  nn_module.def("unembed", [](const nn::Embedding& params, const Operand& x) {
    CallerLine line;
    return tensor_object(nn::unembed(params, tensor_argument(x)));
  });
  nn_module.def("layer_norm", [](const nn::LayerNorm& params, const Operand& x, double epsilon) {
    CallerLine line;
    return tensor_object(nn::layer_norm(params, tensor_argument(x), epsilon));
  });
  nn_module.def("rms_norm", [](const nn::RmsNorm& params, const Operand& x, double epsilon) {
    CallerLine line;
    return tensor_object(nn::rms_norm(params, tensor_argument(x), epsilon));
  });
  nn_module.def("mlp", [](const nn::Mlp& params, const Operand& x, nb::object activation) {
    CallerLine line;
    return tensor_object(nn::mlp(params, tensor_argument(x), activation_of(std::move(activation))));
  });
  nn_module.def(
      "gated_mlp", [](const nn::GatedMlp& params, const Operand& x, nb::object activation) {
        CallerLine line;
        return tensor_object(
            nn::gated_mlp(params, tensor_argument(x), activation_of(std::move(activation))));
      });
  nn_module.def("attention",
                [](const nn::Attention& params, const Operand& x, const AttendingArguments& how) {
                  CallerLine line;
                  return tensor_object(nn::attention(params, tensor_argument(x), attending(how)));
                });
  nn_module.def("cross_attention", [](const nn::Attention& params, const Operand& x,
                                      const Operand& memory, const AttendingArguments& how) {
    CallerLine line;
    return tensor_object(
        nn::cross_attention(params, tensor_argument(x), tensor_argument(memory), attending(how)));
  });
  nn_module.def("attention_with_cache", [](const nn::Attention& params, const Operand& x,
                                           const nn::KeyValueCache& cache, const Operand& start,
                                           const AttendingArguments& how) {
    CallerLine line;
    auto [result, next] =
        nn::attention(params, tensor_argument(x), cache, tensor_argument(start), attending(how));
    return nb::make_tuple(tensor_object(result), next);
  });
  nn_module.def(
      "dropout",
      [](const Operand& x, double rate, const OptionalOperand& key, const Dimensions& dimensions) {
        CallerLine line;
        std::optional<Tensor> given;
        if (key.given) given = key.tensor();
        return tensor_object(nn::dropout(tensor_argument(x), rate, given, dimensions));
      },
      nb::arg("x"), nb::arg("rate"), nb::arg("key").none(), nb::arg("broadcast_axes"));
  nn_module.def("rotated", [](double theta, const Operand& x, const Operand& positions) {
    CallerLine line;
    return tensor_object(nn::rotated({theta}, tensor_argument(x), tensor_argument(positions)));
  });
  nn_module.def("mixture", [](const nn::Mixture& params, const Operand& x, std::int64_t used,
                              double capacity, nb::object activation, const nn::AxisRules& rules) {
    CallerLine line;
    return nn::mixture(params, tensor_argument(x),
                       {.used = used,
                        .capacity = capacity,
                        .activation = activation_of(std::move(activation)),
                        .rules = rules});
  });
}

}  // namespace

void bind_layers(nb::module_& nn_module) {
  bind_makers(nn_module);
  bind_applications(nn_module);
  bind_channel_layers(nn_module);
  bind_recurrent_layers(nn_module);
  bind_losses(nn_module);
}

}  // namespace meshard::python
