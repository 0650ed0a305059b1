// Low-rank adapters of weights.
#pragma once
#include <cstdint>
#include <string>

#include "meshard/base/fields.h"
#include "meshard/nn/maker.h"

namespace meshard::nn {

/// The parameters of a low-rank adapter of a weight (Hu et al.: LoRA, 2022): down [in, rank], up
/// [rank, out]. Only these are trained; the weight stays as it is.
struct Lora {
  Tensor down, up;
  MESHARD_FIELDS(down, up)
};

/// Options of make_lora().
struct LoraOptions {
  /// The names of the weight's dimensions, for AxisRules; "rank" is between them.
  std::string in = "embed", out = "hidden";
  Initializer down = init::he_uniform(), up = init::zeros();
};

/// Creates an adapter of a weight with `in` inputs and `out` outputs. By default `up` is zeros, so
/// that training begins with the weight's own results.
/// @error invalid argument unless all sizes are positive
Lora make_lora(Maker& make, std::int64_t in, std::int64_t out, std::int64_t rank,
               const LoraOptions& options = {}, SourceLocation where = SourceLocation::current());

/// What the adapter adds to the layer's result: scale * (x down) up, [..., in] to [..., out]. The
/// scale of the paper is alpha / rank.
Tensor lora(const Lora& params, const Tensor& x, double scale = 1,
            SourceLocation where = SourceLocation::current());

/// The weight with the adapter: weight + scale * down up, in the dtype of the weight. The weight
/// may have any dimensions, the inputs before the outputs: [width, heads, size] has heads * size
/// outputs. Use it to adapt any layer in training, and to merge an adapter once after it.
///
/// @code
/// auto make_both = [](nn::Maker& make) {
///   return std::pair(nn::make_linear(make, 8, 16), nn::make_lora(make, 8, 16, 2));
/// };
/// auto [layer, adapter] = nn::create({}, 1, make_both);
/// auto loss = [](const nn::Lora& trained, nn::Linear frozen, Tensor x) {
///   frozen.weight = nn::with_lora(frozen.weight, trained);
///   return mean(square(nn::linear(frozen, x)));
/// };
/// grad(loss)(adapter, layer, ones({4, 8})).down.shape();  // [8,2]
/// @endcode
/// @error invalid argument: the first dimensions of the weight do not make up the inputs, or the
/// others the outputs
Tensor with_lora(const Tensor& weight, const Lora& params, double scale = 1,
                 SourceLocation where = SourceLocation::current());

}  // namespace meshard::nn
