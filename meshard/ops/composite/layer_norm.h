#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Layer normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias over the last
/// dimension. The variance is that of the population (biased; Ba, Kiros and Hinton, 2016). scale
/// and bias broadcast to x. Computed in f32 (f64 for f64) and rounded to the dtype of x at the end.
Tensor layer_norm(In x, In scale, In bias, double epsilon = 1e-5);

/// Without scale and bias.
Tensor layer_norm(In x);

}  // namespace meshard
