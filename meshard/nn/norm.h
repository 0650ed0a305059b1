// Normalization over the last dimension.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/nn/maker.h"

namespace meshard::nn {

/// The parameters of layer normalization: scale and bias [width].
struct LayerNorm {
  Tensor scale, bias;
  MESHARD_FIELDS(scale, bias)
};
/// Creates them as ones and zeros. The dimension name is "embed".
LayerNorm make_layer_norm(Maker& make, std::int64_t width,
                          SourceLocation where = SourceLocation::current());
/// Layer normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias. Computed in f32 (Ba,
/// Kiros and Hinton, 2016).
Tensor layer_norm(const LayerNorm& params, const Tensor& x, double epsilon = 1e-5,
                  SourceLocation where = SourceLocation::current());

/// The parameters of RMS normalization: scale [width].
struct RmsNorm {
  Tensor scale;
  MESHARD_FIELDS(scale)
};
/// Creates them as ones. The dimension name is "embed".
RmsNorm make_rms_norm(Maker& make, std::int64_t width,
                      SourceLocation where = SourceLocation::current());
/// RMS normalization: x / sqrt(mean(x^2) + epsilon) * scale. Computed in f32 (Zhang and Sennrich,
/// 2019).
Tensor rms_norm(const RmsNorm& params, const Tensor& x, double epsilon = 1e-6,
                SourceLocation where = SourceLocation::current());

/// Dropout: zeroes each element with probability `rate` and divides the others by 1 - rate.
/// (Srivastava et al., 2014.) Without a key nothing is dropped, as for evaluation. Which elements
/// are dropped depends on the key and their position in the whole tensor, not on the mesh.
///
/// Along `broadcast_dims` all elements are kept or dropped together: for x [batch, height, width,
/// features], {1, 2} drops whole features of a sample (spatial dropout; Tompson et al., 2015), {0}
/// the same elements of all samples.
/// @error as meshard::dropout; a dimension that x does not have
Tensor dropout(const Tensor& x, double rate, const std::optional<Tensor>& key,
               const Dimensions& broadcast_dims = {},
               SourceLocation where = SourceLocation::current());

}  // namespace meshard::nn
