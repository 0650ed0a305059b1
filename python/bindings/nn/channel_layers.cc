// Convolutions, and normalizations of channels. The classes of the parameters are in
// python/meshard/nn/_conv.py and _channel_norms.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "meshard/core.h"
#include "python/bindings/arrays/tensor_argument.h"
#include "python/bindings/arrays/tensors.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/nn/nn.h"
#include "python/bindings/ops/op_arguments.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

using ConvFunction = Tensor (*)(const nn::Conv&, const Tensor&, const ConvolutionOptions&,
                                SourceLocation);

void bind_conv(nb::module_& nn_module, const char* name, ConvFunction function) {
  nn_module.def(name,
                [function](const nn::Conv& params, const Operand& x, const Dimensions& strides,
                           const WindowPadding& padding, const Dimensions& input_dilation,
                           const Dimensions& kernel_dilation, std::int64_t feature_groups) {
                  CallerLine line;
                  return tensor_object(function(params, tensor_argument(x),
                                                {.strides = strides,
                                                 .padding = padding,
                                                 .input_dilation = input_dilation,
                                                 .kernel_dilation = kernel_dilation,
                                                 .feature_groups = feature_groups},
                                                line.where()));
                });
}

// A `make_` function of the number of channels and the name of their dimension.
template <class Norm>
void bind_norm_maker(nb::module_& nn_module, const char* name,
                     Norm (*make_norm)(nn::Maker&, std::int64_t, const std::string&,
                                       SourceLocation)) {
  nn_module.def(name, [make_norm](nn::Maker& make, std::int64_t channels, const std::string& of) {
    return made_unlocked([&] { return make_norm(make, channels, of, SourceLocation::current()); });
  });
}

}  // namespace

void bind_channel_layers(nb::module_& nn_module) {
  nn_module.def("make_conv", [](nn::Maker& make, const Dimensions& window, std::int64_t in,
                                std::int64_t out, std::int64_t groups, std::string in_name,
                                std::string out_name, bool bias, nb::object kernel) {
    nn::ConvSizes options{.groups = groups,
                          .in = std::move(in_name),
                          .out = std::move(out_name),
                          .bias = bias,
                          .kernel = initializer_of(std::move(kernel))};
    return made_unlocked([&] { return nn::make_conv(make, window, in, out, options); });
  });
  bind_conv(nn_module, "conv", nn::conv);
  bind_conv(nn_module, "conv_transpose", nn::conv_transpose);
  bind_norm_maker(nn_module, "make_batch_norm", nn::make_batch_norm);
  bind_norm_maker(nn_module, "make_batch_statistics", nn::make_batch_statistics);
  bind_norm_maker(nn_module, "make_group_norm", nn::make_group_norm);
  bind_norm_maker(nn_module, "make_instance_norm", nn::make_instance_norm);
  nn_module.def(
      "batch_norm",
      [](const nn::BatchNorm& params, const nn::BatchStatistics& state, const Operand& x,
         bool training, double momentum, double epsilon, const OptionalOperand& mask,
         std::int64_t channel_dimension) {
        CallerLine line;
        auto [result, next] = nn::batch_norm(params, state, tensor_argument(x), training,
                                             {.momentum = momentum,
                                              .epsilon = epsilon,
                                              .mask = mask.tensor(),
                                              .channel_dimension = channel_dimension});
        return nb::make_tuple(tensor_object(result), next);
      },
      nb::arg("params"), nb::arg("state"), nb::arg("x"), nb::arg("training"), nb::arg("momentum"),
      nb::arg("epsilon"), nb::arg("mask").none(), nb::arg("channel_axis"));
  nn_module.def("group_norm", [](const nn::GroupNorm& params, const Operand& x, std::int64_t groups,
                                 double epsilon, std::int64_t channel) {
    CallerLine line;
    return tensor_object(nn::group_norm(params, tensor_argument(x), groups, epsilon, channel));
  });
  nn_module.def("instance_norm", [](const nn::InstanceNorm& params, const Operand& x,
                                    double epsilon, std::int64_t channel) {
    CallerLine line;
    return tensor_object(nn::instance_norm(params, tensor_argument(x), epsilon, channel));
  });
}

}  // namespace meshard::python
