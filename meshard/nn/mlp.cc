#include "meshard/nn/mlp.h"

#include "meshard/graph/call_scope.h"
#include "meshard/ops/all.h"

namespace meshard::nn {

namespace activation {
Tensor gelu(const Tensor& x) { return meshard::gelu(x); }
Tensor silu(const Tensor& x) { return meshard::silu(x); }
Tensor relu(const Tensor& x) { return meshard::relu(x); }
}  // namespace activation

namespace {

Linear make_up(Maker& make, std::int64_t width, std::int64_t hidden, const MlpOptions& options) {
  return make_linear(make, width, hidden,
                     {.in = "embed", .out = "hidden", .bias = options.bias, .weight = options.up});
}

Linear make_down(Maker& make, std::int64_t width, std::int64_t hidden, const MlpOptions& options) {
  return make_linear(
      make, hidden, width,
      {.in = "hidden", .out = "embed", .bias = options.bias, .weight = options.down});
}

}  // namespace

Mlp make_mlp(Maker& make, std::int64_t width, std::int64_t hidden, const MlpOptions& options,
             SourceLocation where) {
  CallScope line(where, "in nn::make_mlp");
  Linear up = make_up(make, width, hidden, options);
  return {up, make_down(make, width, hidden, options)};
}

Tensor mlp(const Mlp& params, const Tensor& x, const Activation& activation, SourceLocation where) {
  CallScope line(where, "in nn::mlp");
  return linear(params.down, activation(linear(params.up, x)));
}

GatedMlp make_gated_mlp(Maker& make, std::int64_t width, std::int64_t hidden,
                        const MlpOptions& options, SourceLocation where) {
  CallScope line(where, "in nn::make_gated_mlp");
  Linear gate = make_up(make, width, hidden, options), up = make_up(make, width, hidden, options);
  return {gate, up, make_down(make, width, hidden, options)};
}

Tensor gated_mlp(const GatedMlp& params, const Tensor& x, const Activation& activation,
                 SourceLocation where) {
  CallScope line(where, "in nn::gated_mlp");
  return linear(params.down, activation(linear(params.gate, x)) * linear(params.up, x));
}

}  // namespace meshard::nn
