// Normalisations besides layer_norm. All are computed in f32 (f64 for f64) and rounded to the dtype
// of x at the end; integers give f32.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard {

/// x / sqrt(mean(x^2) + epsilon) over the last dimension (Zhang and Sennrich, 2019), times scale,
/// which broadcasts to x.
Tensor rms_norm(In x, double epsilon = 1e-6);
Tensor rms_norm(In x, In scale, double epsilon = 1e-6);

/// (x - mean) / sqrt(variance + epsilon) * scale + bias within each sample (dimension 0) and each
/// of `groups` groups of neighbouring channels, over all other dimensions too (Wu and He, 2018).
/// scale and bias have one element for each channel. Of as many groups as channels: instance
/// normalisation.
/// @error rank below 2; the channels are no multiple of `groups`; scale or bias of another shape.
Tensor group_norm(In x, In scale, In bias, std::int64_t groups, double epsilon = 1e-5,
                  std::int64_t channel_dimension = -1);

/// What batch_norm gives while training: the result, and the mean and variance (biased) of each
/// channel of this batch, from which the caller keeps running ones.
struct BatchNorm {
  Tensor result, mean, variance;
  MESHARD_FIELDS(result, mean, variance)
};

/// (x - mean) / sqrt(variance + epsilon) * scale + bias with each channel's mean and variance over
/// all other dimensions of the whole batch, on all devices (Ioffe and Szegedy, 2015). scale and
/// bias have one element for each channel. There is no state: in use, give the kept mean and
/// variance to the second form.
/// @error scale, bias, mean or variance of another shape.
BatchNorm batch_norm(In x, In scale, In bias, double epsilon = 1e-5,
                     std::int64_t channel_dimension = -1);
Tensor batch_norm(In x, In scale, In bias, In mean, In variance, double epsilon = 1e-5,
                  std::int64_t channel_dimension = -1);

}  // namespace meshard
