#include "meshard/optim/average.h"

#include "meshard/base/error.h"
#include "meshard/ops/all.h"

namespace meshard::optim::internal {

void check_average(const Average& options) {
  if (options.decay && !(*options.decay >= 0 && *options.decay <= 1))
    throw_invalid(SourceLocation{}, "[optim.Average] the decay must be in [0, 1], not ",
                  *options.decay);
  if (options.start < 0 || options.every < 1)
    throw_invalid(SourceLocation{},
                  "[optim.Average] `start` must be at least 0 and `every` 1, not ", options.start,
                  " and ", options.every);
}

std::vector<Tensor> average_step(const Average& options, std::span<const Tensor> parameters,
                                 std::vector<Tensor> means, Tensor& count, Tensor& steps) {
  check_average(options);
  Tensor after_start = steps - options.start;
  Tensor takes = logical_and(after_start >= 0, equal(after_start % options.every, 0));
  Tensor number = astype(count, DType::f32);
  Tensor weight =
      options.decay ? where(equal(count, 0), 1.0f, full({}, 1 - *options.decay)) : 1 / (number + 1);
  for (std::size_t i = 0; i < means.size(); ++i) {
    const Tensor& mean = means[i];
    Tensor now = laid_out(astype(parameters[i], mean.dtype()), mean);
    Tensor next = options.decay ? (1 - weight) * mean + weight * now
                                : mean + (now - mean) * astype(weight, mean.dtype());
    means[i] = laid_out(where(takes, next, mean), mean);
  }
  count = laid_out(where(takes, count + 1, count), count);
  steps = laid_out(steps + 1, steps);
  return means;
}

std::vector<Tensor> like_parameters(std::span<const Tensor> means,
                                    std::span<const Tensor> parameters, const Tensor& count) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const Tensor& parameter = parameters[i];
    Tensor mean = astype(laid_out(means[i], parameter), parameter.dtype());
    out.push_back(laid_out(where(equal(count, 0), parameter, mean), parameter));
  }
  return out;
}

}  // namespace meshard::optim::internal
