#include "meshard/optim/adam.h"

#include <cmath>

#include "meshard/ops/all.h"

namespace meshard::optim::internal {
namespace {

// 1 - beta^steps, accurate also where beta^steps is close to 1.
Tensor correction(double beta, const Tensor& steps) {
  return beta == 0 ? ones({}) : -expm1(astype(steps, DType::f32) * std::log(beta));
}

}  // namespace

AdamW with_decay(const Adam& adam) {
  return {.rate = adam.rate,
          .beta1 = adam.beta1,
          .beta2 = adam.beta2,
          .epsilon = adam.epsilon,
          .weight_decay = 0,
          .decay_rank = 0,
          .form = adam.form};
}

AdamParts adam_step(const AdamW& options, AdamParts parts, std::span<const Tensor> gradients) {
  Tensor rate = options.rate(parts.steps);
  parts.steps = laid_out(parts.steps + 1, parts.steps);
  Tensor first = correction(options.beta1, parts.steps);
  Tensor second = sqrt(correction(options.beta2, parts.steps));
  bool efficient = options.form == AdamForm::kEfficient;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Tensor &mean = parts.means[i], &square_ = parts.squares[i], &whole = parts.parameters[i];
    auto [parameter, gradient] = prepared(whole, gradients[i], mean);
    Tensor m = options.beta1 * mean + (1 - options.beta1) * gradient;
    Tensor v = options.beta2 * square_ + (1 - options.beta2) * square(gradient);
    Tensor change = efficient ? rate * second / first * m / (sqrt(v) + options.epsilon)
                              : rate * (m / first) / (sqrt(v) / second + options.epsilon);
    if (decays(whole, parts.stacked[i], options.weight_decay, options.decay_rank))
      change = change + rate * options.weight_decay * parameter;
    whole = laid_out(astype(parameter - change, whole.dtype()), whole);
    mean = laid_out(m, mean);
    square_ = laid_out(v, square_);
  }
  return parts;
}

}  // namespace meshard::optim::internal
