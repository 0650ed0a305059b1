// Optimizers: SGD, Adam, and the functions that all optimizers share.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/optim/parameter_step.h"
#include "meshard/optim/schedule.h"

namespace meshard::optim {

// Stochastic gradient descent.

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

// Adam and AdamW.

/// Where Adam adds epsilon. In the formulas m and v are the running means; a hat means that they
/// are corrected for their initialization at zero.
enum class AdamForm : std::uint8_t {
  kCorrected,  ///< rate * m^ / (sqrt(v^) + epsilon): Algorithm 1 of the paper, the usual form
  kEfficient,  ///< rate * sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + epsilon): end of section 2
};

/// The defaults of Adam and AdamW: those of the paper.
inline constexpr double kAdamBeta1 = 0.9, kAdamBeta2 = 0.999, kAdamEpsilon = 1e-8;

/// Adam (Kingma and Ba: Adam, a Method for Stochastic Optimization, 2015).
struct Adam {
  Schedule rate = 1e-3;
  double beta1 = kAdamBeta1, beta2 = kAdamBeta2, epsilon = kAdamEpsilon;
  AdamForm form = AdamForm::kCorrected;
};

/// Adam with decoupled weight decay: each step also subtracts rate * weight_decay * parameter
/// (Loshchilov and Hutter: Decoupled Weight Decay Regularization, 2019).
struct AdamW {
  Schedule rate = 1e-3;
  double beta1 = kAdamBeta1, beta2 = kAdamBeta2, epsilon = kAdamEpsilon;
  double weight_decay = 1e-2;
  /// Exempts parameters with fewer dimensions from the decay: 2 exempts biases and the scales of
  /// norms. Default: 0, none.
  std::int64_t decay_rank = 0;
  AdamForm form = AdamForm::kCorrected;
};

/// Adam's running means of the gradients and of their squares, in the structure of the parameters.
template <class Params>
struct AdamState {
  Params mean, square;
  Tensor steps;  ///< taken so far, i32
  MESHARD_FIELDS(mean, square, steps)
};

namespace internal {
struct AdamParts {
  std::vector<Tensor> parameters, means, squares;
  Tensor steps;
  std::vector<std::size_t> stacked;  // dimensions, by parameter
};
/// One step. @pre the lists match
AdamParts adam_step(const AdamW& options, AdamParts parts, std::span<const Tensor> gradients);

AdamW with_decay(const Adam& adam);
inline const AdamW& with_decay(const AdamW& adam) { return adam; }

template <class T>
inline constexpr bool kIsAdam = std::is_same_v<T, Adam> || std::is_same_v<T, AdamW>;
}  // namespace internal

/// The initial state: zeros created on the devices, each sharded as the corresponding tensor of
/// `layout` (see zero_layout). The means of 16-bit parameters are f32.
template <class Optimizer, class Params>
requires internal::kIsAdam<Optimizer> AdamState<Params> init(
    const Optimizer&, const Params& params, const Params& layout,
    SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::init");
  std::vector<Tensor> tensors = structure::tensors(params);
  std::vector<Tensor> places = internal::for_parameters(params, layout, "optim.init", "layout");
  std::vector<Tensor> moments = internal::zeros_for(tensors, places, 2);
  std::span<const Tensor> all = moments;
  return {structure::with_tensors(params, all.first(tensors.size())),
          structure::with_tensors(params, all.subspan(tensors.size())),
          internal::no_steps(tensors)};
}
/// The same, sharded as the parameters.
template <class Optimizer, class Params>
requires internal::kIsAdam<Optimizer> AdamState<Params> init(
    const Optimizer& optimizer, const Params& params,
    SourceLocation where = SourceLocation::current()) {
  return init(optimizer, params, params, where);
}

/// One step: the new parameters and the new state. New tensors have the shardings of the old ones;
/// the step of a parameter is computed in the sharding of its state. Call it inside jit.
/// @error invalid argument: gradients of another structure or shapes.
template <class Optimizer, class Params>
requires internal::kIsAdam<Optimizer> std::pair<Params, AdamState<Params>> update(
    const Optimizer& optimizer, const Params& params, const Params& gradients,
    const AdamState<Params>& state, SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::update");
  internal::AdamParts next =
      internal::adam_step(internal::with_decay(optimizer),
                          {structure::tensors(params),
                           internal::for_parameters(params, state.mean, "optim.update", "mean"),
                           internal::for_parameters(params, state.square, "optim.update", "square"),
                           state.steps, internal::stacked_dimensions(params)},
                          internal::for_parameters(params, gradients, "optim.update", "gradient"));
  return {structure::with_tensors(params, next.parameters),
          {structure::with_tensors(params, next.means),
           structure::with_tensors(params, next.squares), next.steps}};
}

}  // namespace meshard::optim
