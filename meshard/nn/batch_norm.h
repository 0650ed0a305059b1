// Normalization of channels: over the batch with running statistics, by groups, by instance.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "meshard/base/fields.h"
#include "meshard/nn/maker.h"

namespace meshard::nn {

/// The parameters of batch normalization: scale and bias [channels].
struct BatchNorm {
  Tensor scale, bias;
  MESHARD_FIELDS(scale, bias)
};

/// The state of batch normalization: the running mean and variance [channels]. It is not a
/// parameter: optimizers do not update it. It is a structure of tensors as parameters are, so that
/// jit, shardings and checkpoints carry it.
struct BatchStatistics {
  Tensor mean, variance;
  MESHARD_FIELDS(mean, variance)
};

/// Creates the parameters as ones and zeros. `name` names the dimension, for AxisRules; the
/// default is the name in the results of make_conv().
BatchNorm make_batch_norm(Maker& make, std::int64_t channels, const std::string& name = "filters",
                          SourceLocation where = SourceLocation::current());
/// Creates the state: means of zero and variances of one.
BatchStatistics make_batch_statistics(Maker& make, std::int64_t channels,
                                      const std::string& name = "filters",
                                      SourceLocation where = SourceLocation::current());

/// Options of batch_norm().
struct BatchNormOptions {
  /// The part of the running statistics that a training step keeps. Default: 0.99.
  double momentum = 0.99;
  double epsilon = 1e-5;
  /// Bools that broadcast to x: false where an element, for example padding, does not count in the
  /// statistics of a training step. Default (undefined): all count.
  Tensor mask = {};
  std::int64_t channel_dimension = -1;
};

/// Batch normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias for each channel
/// (Ioffe and Szegedy, 2015). Returns the result, in the dtype of x, and the new state.
///
/// In training, mean and (biased) variance are over the whole batch, on all devices, over all
/// dimensions but the channels; the new state is momentum * old + (1 - momentum) * batch, without
/// derivative. Otherwise they are the running ones, and the state is unchanged. Computed in f32
/// (f64 for f64).
///
/// @code
/// auto [norm, state] = nn::create({}, 1, [](nn::Maker& make) {
///   return std::pair(nn::make_batch_norm(make, 3), nn::make_batch_statistics(make, 3));
/// });
/// auto step = jit([](const nn::BatchNorm& norm, const nn::BatchStatistics& state, Tensor x) {
///   return nn::batch_norm(norm, state, x, /*training=*/true);
/// });
/// auto [y, next] = step(norm, state, ones({8, 4, 4, 3}));
/// Tensor mean = next.mean;  // 0.01 for each channel
/// @endcode
/// @error invalid argument: parameters or state that do not have one number per channel; a mask
/// that is not of bools or does not broadcast to x; a momentum outside 0 to 1
std::pair<Tensor, BatchStatistics> batch_norm(const BatchNorm& params, const BatchStatistics& state,
                                              const Tensor& x, bool training,
                                              const BatchNormOptions& options = {},
                                              SourceLocation where = SourceLocation::current());

/// The parameters of group normalization: scale and bias [channels].
struct GroupNorm {
  Tensor scale, bias;
  MESHARD_FIELDS(scale, bias)
};
/// Creates them as ones and zeros, as make_batch_norm().
GroupNorm make_group_norm(Maker& make, std::int64_t channels, const std::string& name = "filters",
                          SourceLocation where = SourceLocation::current());
/// Group normalization: each sample's `groups` groups of adjacent channels are normalized by their
/// own mean and variance (Wu and He, 2018). Samples are dimension 0.
/// @error as meshard::group_norm()
Tensor group_norm(const GroupNorm& params, const Tensor& x, std::int64_t groups,
                  double epsilon = 1e-5, std::int64_t channel_dimension = -1,
                  SourceLocation where = SourceLocation::current());

/// The parameters of instance normalization: scale and bias [channels].
struct InstanceNorm {
  Tensor scale, bias;
  MESHARD_FIELDS(scale, bias)
};
/// Creates them as ones and zeros, as make_batch_norm().
InstanceNorm make_instance_norm(Maker& make, std::int64_t channels,
                                const std::string& name = "filters",
                                SourceLocation where = SourceLocation::current());
/// Instance normalization: each channel of each sample is normalized by its own mean and variance
/// (Ulyanov, Vedaldi and Lempitsky, 2016). Samples are dimension 0.
/// @error as meshard::group_norm()
Tensor instance_norm(const InstanceNorm& params, const Tensor& x, double epsilon = 1e-5,
                     std::int64_t channel_dimension = -1,
                     SourceLocation where = SourceLocation::current());

}  // namespace meshard::nn
