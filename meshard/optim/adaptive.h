// Optimizers that adapt the step to each element or to each parameter: Lion, LAMB, RMSProp,
// Adagrad, Adafactor.
#pragma once
#include <cstdint>

#include "meshard/optim/transform.h"

namespace meshard::optim {

/// Lion (Chen et al.: Symbolic Discovery of Optimization Algorithms, 2023). The parameter changes
/// by -rate * (sign((1 - beta1) * g + beta1 * m) + weight_decay * parameter); then the mean m of
/// the gradients g becomes beta2 * m + (1 - beta2) * g. State: `mean`.
struct Lion {
  Schedule rate = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 1e-3;
  /// Exempts parameters with fewer dimensions from the decay. Default: 0, none.
  std::int64_t decay_rank = 0;
  operator Transform() const;  // NOLINT: passed to init(), update() and Chain
};

/// LAMB (You et al.: Large Batch Optimization for Deep Learning, 2020): the direction of Adam with
/// decoupled decay, scaled for each parameter (each layer, in an nn::Layers) to the norm of the
/// parameter; a norm of 0 leaves it unscaled. `epsilon_root` is added to the corrected mean of the
/// squares, before the root. State: `mean`, `square`.
struct Lamb {
  Schedule rate = 1e-3;
  double beta1 = kAdamBeta1, beta2 = kAdamBeta2, epsilon = 1e-6, epsilon_root = 0;
  double weight_decay = 0;
  /// Exempts parameters with fewer dimensions from the decay. Default: 0, none.
  std::int64_t decay_rank = 0;
  operator Transform() const;  // NOLINT
};

/// RMSProp (Hinton, 2012): rate * g / sqrt(v), where v is a running mean of the squares of the
/// gradients g. State: `square`, and if they are used `mean` and `velocity`.
struct RmsProp {
  Schedule rate = 1e-3;
  double decay = 0.9;  ///< of the running means
  double epsilon = 1e-8;
  /// sqrt(v + epsilon) instead of sqrt(v) + epsilon.
  bool epsilon_inside = true;
  double first = 0;  ///< the initial v
  /// Subtracts the square of the mean of the gradients from v (Graves, 2013).
  bool centered = false;
  /// Corrects the means for their initial values, as Adam does.
  bool corrected = false;
  /// Adds up the steps, as Momentum does. Default: 0, none.
  double momentum = 0;
  bool nesterov = false;
  operator Transform() const;  // NOLINT
};

/// Adagrad (Duchi, Hazan and Singer: Adaptive Subgradient Methods, 2011): rate * g / sqrt(s +
/// epsilon), where s is the sum of the squares of the gradients; 0 where s is 0. State: `square`.
struct Adagrad {
  Schedule rate = 1e-2;
  double first = 0.1;  ///< the initial s
  double epsilon = 1e-7;
  operator Transform() const;  // NOLINT
};

/// Adafactor (Shazeer and Stern: Adaptive Learning Rates with Sublinear Memory Cost, 2018). Of the
/// running means of the squares of the gradients, a parameter keeps only the means over each of its
/// two largest dimensions, if both have at least `smallest_factored` elements. Their decay in step
/// t is 1 - t^-decay. State: `row` and `column`, or `square`; `velocity` with momentum.
struct Adafactor {
  Schedule rate = 1e-2;
  double decay = 0.8;
  std::int64_t smallest_factored = 128;
  /// Multiplies the step of a parameter by the root mean square of the parameter, at least 1e-3.
  bool relative = true;
  /// Limits the root mean square of the step, before the rate, as ClipByBlock does. 0: no limit.
  double clip = 1;
  /// The decay of a running mean of the steps. Default: 0, none.
  double momentum = 0;
  /// Times the parameter, subtracted in each step; not multiplied by the rate.
  double weight_decay = 0;
  /// Exempts parameters with fewer dimensions from the decay. Default: 0, none.
  std::int64_t decay_rank = 0;
  double epsilon = 1e-30;      ///< added to the squares of the gradients
  bool factored = true;        ///< false: all parameters keep all squares
  operator Transform() const;  // NOLINT
};

namespace internal {

/// Options of adam_direction.
struct AdamDirection {
  double beta1, beta2, epsilon, epsilon_root;
  bool nesterov, efficient;
};
/// Replaces changes by Adam's direction, without the rate. State: `mean`, `square`.
Transform adam_direction(const AdamDirection& options);
/// Replaces changes by -rate times the change.
Transform descent(const Schedule& rate);
/// The transforms after each other, with one set of slots. @pre they have different slots
Transform in_turn(std::vector<Transform> parts);
/// 1 - beta^count for an integer tensor of rank 0; accurate where beta^count is close to 1.
Tensor mean_correction(double beta, const Tensor& count);

}  // namespace internal
}  // namespace meshard::optim
