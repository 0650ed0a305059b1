#include "meshard/nn/batch_norm.h"

#include "meshard/base/error.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard::nn {
namespace {

// Scale and bias of a normalization.
template <class Norm>
Norm made_norm(Maker& make, std::int64_t channels, const std::string& name) {
  Tensor scale = make({channels}, P(name), init::ones());
  return {scale, make({channels}, P(name), init::zeros())};
}

// The numbers of channels along their dimension of x.
Tensor along_channels(const Tensor& numbers, const Tensor& x, int channel) {
  Dimensions sizes(static_cast<std::size_t>(x.rank()), 1);
  sizes[static_cast<std::size_t>(channel)] = numbers.dim(0);
  return reshape(numbers, Shape(std::move(sizes)));
}

// Mean and variance of the elements that the mask counts. x is wide.
BatchStatistics masked_statistics(const Tensor& x, const Tensor& mask, int channel) {
  if (mask.dtype() != DType::bool_)
    throw_invalid(mask.where(), "[nn.batch_norm] the mask must be of bools, not ", mask.type());
  for (std::int64_t d = 1; d <= mask.rank(); ++d)
    if (d > x.rank() || (mask.dim(-d) != 1 && mask.dim(-d) != x.dim(-d)))
      throw_invalid(mask.where(), "[nn.batch_norm] the mask ", mask.type(),
                    " does not broadcast to x ", x.type());
  Dimensions along;
  for (int d = 0; d < x.rank(); ++d)
    if (d != channel) along.push_back(d);
  Tensor counts = broadcast_to(mask, x.shape());
  Tensor count = sum(astype(counts, x.dtype()), along);
  Tensor mean = sum(meshard::where(counts, x, 0), along) / count;
  Tensor distance = meshard::where(counts, x - along_channels(mean, x, channel), 0);
  return {mean, sum(square(distance), along) / count};
}

// The running numbers after a step.
Tensor moved(const Tensor& running, const Tensor& batch, double momentum) {
  Tensor now = astype(stop_gradient(batch), running.dtype());
  return running * momentum + now * (1 - momentum);
}

}  // namespace

BatchNorm make_batch_norm(Maker& make, std::int64_t channels, const std::string& name,
                          SourceLocation where) {
  CallScope line(where, "in nn::make_batch_norm");
  return made_norm<BatchNorm>(make, channels, name);
}

BatchStatistics make_batch_statistics(Maker& make, std::int64_t channels, const std::string& name,
                                      SourceLocation where) {
  CallScope line(where, "in nn::make_batch_statistics");
  Tensor mean = make({channels}, P(name), init::zeros());
  return {mean, make({channels}, P(name), init::ones())};
}

std::pair<Tensor, BatchStatistics> batch_norm(const BatchNorm& params, const BatchStatistics& state,
                                              const Tensor& x, bool training,
                                              const BatchNormOptions& options,
                                              SourceLocation where) {
  CallScope line(where, "in nn::batch_norm");
  if (!(options.momentum >= 0 && options.momentum <= 1))
    throw_invalid(x.where(), "[nn.batch_norm] momentum = ", options.momentum, " is outside 0 to 1");
  std::int64_t channel = options.channel_dimension;
  if (!training)
    return {meshard::batch_norm(x, params.scale, params.bias, state.mean, state.variance,
                                options.epsilon, channel),
            state};
  for (const Tensor* running : {&state.mean, &state.variance})
    if (running->shape() != params.scale.shape())
      throw_invalid(x.where(), "[nn.batch_norm] the running ",
                    running == &state.mean ? "mean " : "variance ", running->type(),
                    " does not have one number for each channel, as the scale ",
                    params.scale.type());
  BatchStatistics batch;
  Tensor result;
  if (options.mask.defined()) {
    int at = static_cast<int>(channel < 0 ? channel + x.rank() : channel);
    DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
    batch = masked_statistics(astype(x, wide), options.mask, at);
    result = meshard::batch_norm(x, params.scale, params.bias, batch.mean, batch.variance,
                                 options.epsilon, channel);
  } else {
    auto [y, mean, variance] =
        meshard::batch_norm(x, params.scale, params.bias, options.epsilon, channel);
    result = y;
    batch = {mean, variance};
  }
  return {result,
          {moved(state.mean, batch.mean, options.momentum),
           moved(state.variance, batch.variance, options.momentum)}};
}

GroupNorm make_group_norm(Maker& make, std::int64_t channels, const std::string& name,
                          SourceLocation where) {
  CallScope line(where, "in nn::make_group_norm");
  return made_norm<GroupNorm>(make, channels, name);
}

Tensor group_norm(const GroupNorm& params, const Tensor& x, std::int64_t groups, double epsilon,
                  std::int64_t channel_dimension, SourceLocation where) {
  CallScope line(where, "in nn::group_norm");
  return meshard::group_norm(x, params.scale, params.bias, groups, epsilon, channel_dimension);
}

InstanceNorm make_instance_norm(Maker& make, std::int64_t channels, const std::string& name,
                                SourceLocation where) {
  CallScope line(where, "in nn::make_instance_norm");
  return made_norm<InstanceNorm>(make, channels, name);
}

Tensor instance_norm(const InstanceNorm& params, const Tensor& x, double epsilon,
                     std::int64_t channel_dimension, SourceLocation where) {
  CallScope line(where, "in nn::instance_norm");
  std::int64_t channels = params.scale.dim(0);
  return meshard::group_norm(x, params.scale, params.bias, channels, epsilon, channel_dimension);
}

}  // namespace meshard::nn
