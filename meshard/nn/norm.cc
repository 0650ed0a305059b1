#include "meshard/nn/norm.h"

#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/ops/composite/activation.h"

namespace meshard::nn {

LayerNorm make_layer_norm(Maker& make, std::int64_t width, SourceLocation where) {
  CallScope line(where, "in nn::make_layer_norm");
  Tensor scale = make({width}, P("embed"), init::ones());
  return {scale, make({width}, P("embed"), init::zeros())};
}

Tensor layer_norm(const LayerNorm& params, const Tensor& x, double epsilon, SourceLocation where) {
  CallScope line(where, "in nn::layer_norm");
  return meshard::layer_norm(x, params.scale, params.bias, epsilon);
}

RmsNorm make_rms_norm(Maker& make, std::int64_t width, SourceLocation where) {
  CallScope line(where, "in nn::make_rms_norm");
  return {make({width}, P("embed"), init::ones())};
}

Tensor rms_norm(const RmsNorm& params, const Tensor& x, double epsilon, SourceLocation where) {
  CallScope line(where, "in nn::rms_norm");
  return meshard::rms_norm(x, params.scale, epsilon);
}

Tensor dropout(const Tensor& x, double rate, const std::optional<Tensor>& key,
               SourceLocation where) {
  CallScope line(where, "in nn::dropout");
  return key ? meshard::dropout(x, rate, *key) : x;
}

}  // namespace meshard::nn
