#include "meshard/optim/sgd.h"

#include "meshard/base/error.h"
#include "meshard/ops/all.h"

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

}  // namespace meshard::optim::internal
