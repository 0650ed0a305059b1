// Stochastic gradient descent.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "meshard/graph/call_scope.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/optim/parameter_step.h"
#include "meshard/optim/schedule.h"

namespace meshard::optim {

/// Stochastic gradient descent with momentum and weight decay. With g the gradient plus
/// weight_decay times the parameter, the velocity v becomes momentum * v + g, and the parameter
/// changes by -rate * v; with `nesterov` by -rate * (g + momentum * v) (Sutskever et al., 2013).
struct Sgd {
  Schedule rate = 1e-2;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  /// Exempts parameters with fewer dimensions from the decay. Default: 0, none.
  std::int64_t decay_rank = 0;
};

/// The velocities, in the structure of the parameters; nullopt without momentum.
template <class Params>
struct SgdState {
  std::optional<Params> velocity;
  Tensor steps;  ///< taken so far, i32
  MESHARD_FIELDS(velocity, steps)
};

namespace internal {
struct SgdParts {
  std::vector<Tensor> parameters, velocities;  // velocities: none without momentum
  Tensor steps;
  std::vector<std::size_t> stacked;  // dimensions, by parameter
};
/// One step. @pre the lists match
SgdParts sgd_step(const Sgd& options, SgdParts parts, std::span<const Tensor> gradients);
}  // namespace internal

/// The initial state; velocities have the shardings of the tensors of `layout`.
template <class Params>
SgdState<Params> init(const Sgd& sgd, const Params& params, const Params& layout,
                      SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::init");
  std::vector<Tensor> tensors = structure::tensors(params);
  std::vector<Tensor> places = internal::for_parameters(params, layout, "optim.init", "layout");
  SgdState<Params> state{std::nullopt, internal::no_steps(tensors)};
  if (sgd.momentum == 0) return state;
  state.velocity = structure::with_tensors(params, internal::zeros_for(tensors, places, 1));
  return state;
}
/// The same, sharded as the parameters.
template <class Params>
SgdState<Params> init(const Sgd& sgd, const Params& params,
                      SourceLocation where = SourceLocation::current()) {
  return init(sgd, params, params, where);
}

/// One step: the new parameters and the new state. Call it inside jit.
/// @error invalid argument: gradients of another structure or shapes; a state created with or
/// without momentum, unlike the options.
template <class Params>
std::pair<Params, SgdState<Params>> update(const Sgd& sgd, const Params& params,
                                           const Params& gradients, const SgdState<Params>& state,
                                           SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::update");
  std::vector<Tensor> velocities;
  if (state.velocity)
    velocities = internal::for_parameters(params, *state.velocity, "optim.update", "velocity");
  internal::SgdParts next = internal::sgd_step(
      sgd,
      {structure::tensors(params), velocities, state.steps, internal::stacked_dimensions(params)},
      internal::for_parameters(params, gradients, "optim.update", "gradient"));
  SgdState<Params> after{std::nullopt, next.steps};
  if (state.velocity) after.velocity = structure::with_tensors(params, next.velocities);
  return {structure::with_tensors(params, next.parameters), after};
}

}  // namespace meshard::optim
