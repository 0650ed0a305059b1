// Optimizers for matrices: Muon, Shampoo.
#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "meshard/optim/transform.h"

namespace meshard::optim {

/// Muon (Jordan et al., 2024): the momentum of each matrix, made nearly orthogonal by Newton-Schulz
/// iterations. Of an nn::Layers, the matrix of each layer. Parameters of another rank are updated
/// by AdamW, also with Nesterov momentum if it is chosen; use Groups for matrices that are not
/// products, such as embeddings. State: `mean`, and `square` for those of AdamW.
struct Muon {
  Schedule rate = 2e-2;
  double momentum = 0.95;  ///< the decay of the running mean of the gradients
  bool nesterov = true;
  std::int64_t iterations = 5;
  /// An iteration replaces X by a X + (b A + c A A) X with A = X X^T.
  std::array<double, 3> coefficients{3.4445, -4.7750, 2.0315};
  double epsilon = 1e-8;  ///< added to the norm by which a matrix is divided, and of AdamW
  double weight_decay = 0;
  /// Multiplies the step of a matrix by its product with the momentum (Bernstein and Newhouse: Old
  /// Optimizer, New Norm, 2024).
  bool adaptive = false;
  /// The root mean square of a step before the rate, about: multiplies it by sqrt(max(rows,
  /// columns)) times this (Liu et al.: Muon is Scalable for LLM Training, 2025, which uses 0.2).
  /// Default: 0, which multiplies it by sqrt(max(1, columns / rows)).
  double rms = 0;
  /// The learning rate of AdamW. Default: the rate of the matrices.
  std::optional<Schedule> adam_rate = std::nullopt;
  double adam_beta1 = kAdamBeta1, adam_beta2 = kAdamBeta2, adam_weight_decay = 0;
  operator Transform() const;  // NOLINT: passed to init(), update() and Chain
};

/// Shampoo (Gupta, Koren and Singer: Preconditioned Stochastic Tensor Optimization, 2018). For each
/// dimension d of a parameter with k dimensions, H_d is the sum of G_d G_d^T, where the gradient G
/// is a matrix with the rows of dimension d. The gradient is multiplied along each dimension by
/// H_d^(-1/2k). Dimensions that are larger than `largest` are left out, and not counted in k. The
/// roots are computed in each step by eigh(); its time grows with the cube of the dimension. State:
/// `factor_0`, `factor_1`, ... by dimension of a layer; `velocity` with momentum.
struct Shampoo {
  Schedule rate = 1e-1;
  double epsilon = 1e-4;  ///< the initial H is epsilon times the identity
  double momentum = 0;    ///< adds up the steps, as Momentum does
  bool nesterov = false;
  /// Times the parameter, added to the gradient.
  double weight_decay = 0;
  /// Exempts parameters with fewer dimensions from the decay. Default: 0, none.
  std::int64_t decay_rank = 0;
  std::int64_t largest = 1024;
  operator Transform() const;  // NOLINT
};

}  // namespace meshard::optim
