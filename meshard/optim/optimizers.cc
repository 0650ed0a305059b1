#include "meshard/optim/optimizers.h"

#include "meshard/base/error.h"
#include "meshard/ops/all.h"
#include "meshard/optim/adaptive.h"

namespace meshard::optim::internal {

SgdParts sgd_step(const Sgd& options, SgdParts parts, std::span<const Tensor> gradients) {
  bool moving = options.momentum != 0;
  if (moving != !parts.velocities.empty() && !gradients.empty())
    throw_invalid(SourceLocation{}, "[optim.update] the momentum is ", options.momentum,
                  " and the state has ", parts.velocities.size(),
                  " velocities: create the state with init() of the same optimizer");
  Tensor rate = options.rate(parts.steps);
  parts.steps = laid_out(parts.steps + 1, parts.steps);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Tensor& whole = parts.parameters[i];
    auto [parameter, gradient] =
        moving ? prepared(whole, gradients[i], parts.velocities[i]) : prepared(whole, gradients[i]);
    if (decays(whole, parts.stacked[i], options.weight_decay, options.decay_rank))
      gradient = gradient + options.weight_decay * parameter;
    Tensor change = gradient;
    if (moving) {
      Tensor velocity = options.momentum * parts.velocities[i] + gradient;
      change = options.nesterov ? gradient + options.momentum * velocity : velocity;
      parts.velocities[i] = laid_out(velocity, parts.velocities[i]);
    }
    whole = laid_out(astype(parameter - rate * change, whole.dtype()), whole);
  }
  return parts;
}

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
  Tensor first = mean_correction(options.beta1, parts.steps);
  Tensor second = sqrt(mean_correction(options.beta2, parts.steps));
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
