// Normalizations.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// Layer normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias over the last
/// dimension. The variance is the population variance (biased; Ba, Kiros and Hinton, 2016). scale
/// and bias broadcast to x. Computed in f32 (f64 for f64) and rounded to the dtype of x at the end.
Tensor layer_norm(In x, In scale, In bias, double epsilon = 1e-5);

/// Without scale and bias.
Tensor layer_norm(In x);

// Normalizations other than layer_norm. All are computed in f32 (f64 for f64) and rounded to the
// dtype of x at the end; integers give f32.

/// RMS normalization: x / sqrt(mean(x^2) + epsilon) over the last dimension (Zhang and Sennrich,
/// 2019), times scale, which broadcasts to x.
Tensor rms_norm(In x, double epsilon = 1e-6);
Tensor rms_norm(In x, In scale, double epsilon = 1e-6);

/// Group normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias within each sample and
/// group (Wu and He, 2018). Samples are dimension 0; each of the `groups` groups consists of
/// adjacent channels, and the statistics are over all other dimensions too. scale and bias have one
/// element per channel. If `groups` is the number of channels, it is instance normalization.
/// @error rank below 2; the number of channels is not a multiple of `groups`; scale or bias of
/// another shape.
Tensor group_norm(In x, In scale, In bias, std::int64_t groups, double epsilon = 1e-5,
                  std::int64_t channel_dimension = -1);

/// The result of batch_norm in training, with the statistics of the batch. These are the mean and
/// the (biased) variance of each channel, from which the caller updates running ones.
struct BatchNorm {
  Tensor result, mean, variance;
  MESHARD_FIELDS(result, mean, variance)
};

/// Batch normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias with each channel's
/// statistics (Ioffe and Szegedy, 2015). Mean and variance are over all other dimensions of the
/// whole batch, on all devices. scale and bias have one element per channel. It keeps no state: for
/// inference pass the running mean and variance to the second form.
/// @error scale, bias, mean or variance of another shape.
BatchNorm batch_norm(In x, In scale, In bias, double epsilon = 1e-5,
                     std::int64_t channel_dimension = -1);
Tensor batch_norm(In x, In scale, In bias, In mean, In variance, double epsilon = 1e-5,
                  std::int64_t channel_dimension = -1);

}  // namespace meshard
