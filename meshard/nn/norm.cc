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
               const Dimensions& broadcast_dims, SourceLocation where) {
  CallScope line(where, "in nn::dropout");
  if (!key) return x;
  if (broadcast_dims.empty()) return meshard::dropout(x, rate, *key);
  Dimensions sizes = x.shape().sizes();
  for (std::int64_t each : broadcast_dims)
    sizes[static_cast<std::size_t>(
        normalize_dimension(each, x.rank(), "nn.dropout", effective_source(where)))] = 1;
  // What dropout makes of ones: 0 or 1 / (1 - rate).
  DType dtype = is_inexact(x.dtype()) ? x.dtype() : kDefaultFloat;
  Tensor kept =
      not_equal(meshard::dropout(ones(Shape(std::move(sizes)), DType::f32), rate, *key), 0);
  if (rate == 1) return zeros_like(astype(x, dtype));
  return meshard::where(kept, astype(x, dtype) / (1 - rate), 0);
}

}  // namespace meshard::nn
