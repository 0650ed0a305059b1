#include "meshard/optim/matrix_optimizers.h"

#include <algorithm>
#include <cmath>

#include "meshard/base/error.h"
#include "meshard/ops/all.h"
#include "meshard/optim/adaptive.h"

namespace meshard::optim {
namespace {

using internal::StepTensors;

// The nearly orthogonal matrices of the last two dimensions.
Tensor orthogonalized(const Muon& o, Tensor x) {
  bool is_tall = x.dim(-2) > x.dim(-1);
  if (is_tall) x = matrix_transpose(x);
  x = x / (sqrt(sum(square(x), {-2, -1}, true)) + o.epsilon);
  auto [a, b, c] = o.coefficients;
  for (std::int64_t i = 0; i < o.iterations; ++i) {
    Tensor product = matmul(x, matrix_transpose(x));
    x = a * x + matmul(b * product + c * matmul(product, product), x);
  }
  return is_tall ? matrix_transpose(x) : x;
}

void muon_step(const Muon& o, StepTensors& step) {
  Tensor count = step.steps + 1;
  Tensor first = internal::mean_correction(o.momentum, count);
  Tensor next = internal::mean_correction(o.momentum, count + 1);
  for (std::size_t i = 0; i < step.size(); ++i) {
    const Tensor gradient = step.changes[i];
    Tensor m = o.momentum * step.slot("mean")[i] + (1 - o.momentum) * gradient;
    step.set_slot("mean", i, m);
    Tensor direction =
        o.nesterov ? o.momentum * (m / next) + (1 - o.momentum) * (gradient / first) : m / first;
    Tensor change = orthogonalized(o, direction);
    if (o.adaptive) change = sum(direction * change, {-2, -1}, true) * change;
    auto rows = static_cast<double>(gradient.dim(-2)),
         columns = static_cast<double>(gradient.dim(-1));
    double scale = o.rms != 0 ? std::sqrt(std::max(rows, columns)) * o.rms
                              : std::sqrt(std::max(1.0, columns / rows));
    step.changes[i] = scale * change;
  }
}

// The dimensions of a layer that Shampoo multiplies along.
Dimensions preconditioned(const Shampoo& o, const StepTensors& step, std::size_t i) {
  Dimensions found;
  for (std::int64_t d : step.layer_dimensions(i))
    if (step.parameters[i].dim(d) <= o.largest) found.push_back(d);
  return found;
}

std::string factor_name(const StepTensors& step, std::size_t i, std::int64_t dimension) {
  return cat("factor_", dimension - static_cast<std::int64_t>(step.stacked[i]));
}

// [layers..., n, others]: the parameter as matrices with the rows of one dimension.
Tensor as_rows(const Tensor& x, std::size_t stacked, std::int64_t dimension) {
  Dimensions sizes;
  for (std::size_t d = 0; d < stacked; ++d) sizes.push_back(x.dim(static_cast<std::int64_t>(d)));
  sizes.push_back(x.dim(dimension));
  sizes.push_back(-1);
  return reshape(moveaxis(x, dimension, static_cast<std::int64_t>(stacked)), sizes);
}

// The inverse of as_rows for a tensor like `x`.
Tensor from_rows(const Tensor& rows, const Tensor& x, std::size_t stacked, std::int64_t dimension) {
  Dimensions sizes = x.shape().sizes();
  Dimensions moved;
  for (std::int64_t d = 0; d < x.rank(); ++d)
    if (d != dimension) moved.push_back(sizes[static_cast<std::size_t>(d)]);
  moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(stacked), x.dim(dimension));
  return moveaxis(reshape(rows, moved), static_cast<std::int64_t>(stacked), dimension);
}

// x^(-1 / power) of symmetric positive matrices.
Tensor inverse_root(const Tensor& x, double power, double least) {
  Eigh factors = eigh(x);
  // Rounding can make the smallest eigenvalue negative; none is below `least` in exact arithmetic.
  Tensor roots = pow(maximum(factors.eigenvalues, least), -1 / power);
  const Tensor& v = factors.eigenvectors;
  return matmul(v * expand_dims(roots, -2), matrix_transpose(v));
}

void shampoo_step(const Shampoo& o, StepTensors& step) {
  for (std::size_t i = 0; i < step.size(); ++i) {
    const Tensor gradient = step.changes[i];
    Tensor change = gradient;
    std::size_t stacked = step.stacked[i];
    Dimensions dimensions = preconditioned(o, step, i);
    for (std::int64_t d : dimensions) {
      std::string name = factor_name(step, i, d);
      Tensor rows = as_rows(gradient, stacked, d);
      Tensor factor = step.slot(name)[i] + matmul(rows, matrix_transpose(rows));
      step.set_slot(name, i, factor);
      Tensor root = inverse_root(factor, 2 * static_cast<double>(dimensions.size()), o.epsilon);
      change = from_rows(matmul(root, as_rows(change, stacked, d)), change, stacked, d);
    }
    step.changes[i] = change;
  }
}

}  // namespace

Muon::operator Transform() const {
  Transform matrices =
      internal::in_turn({Transform({[](StepTensors& step) { step.add_slot("mean"); },
                                    [self = *this](StepTensors& step) { muon_step(self, step); }}),
                         Decay{weight_decay}, internal::descent(rate)});
  Transform others = internal::in_turn(
      {internal::adam_direction({adam_beta1, adam_beta2, epsilon, 0, nesterov, false}),
       Decay{adam_weight_decay}, internal::descent(adam_rate.value_or(rate))});
  return internal::by_rank(2, std::move(matrices), std::move(others));
}

Shampoo::operator Transform() const {
  auto initial = [self = *this](StepTensors& step) {
    for (std::size_t i = 0; i < step.size(); ++i)
      for (std::int64_t d : preconditioned(self, step, i)) {
        Dimensions sizes, like;
        for (std::size_t s = 0; s < step.stacked[i]; ++s) {
          like.push_back(static_cast<std::int64_t>(s));
          sizes.push_back(step.parameters[i].dim(like.back()));
        }
        std::int64_t n = step.parameters[i].dim(d);
        for (int k = 0; k < 2; ++k) {
          like.push_back(-1);
          sizes.push_back(n);
        }
        std::string name = factor_name(step, i, d);
        step.add_slot(name, i, sizes, like);
        Tensor& made = step.slot(name)[i];
        made = internal::laid_out(made + self.epsilon * eye(n, n, 0, made.dtype()), made);
      }
  };
  auto apply = [self = *this](StepTensors& step) { shampoo_step(self, step); };
  std::vector<Transform> parts{Decay{weight_decay, decay_rank}, Transform({initial, apply})};
  if (momentum != 0) parts.push_back(Momentum{momentum, nesterov});
  parts.push_back(internal::descent(rate));
  return internal::in_turn(std::move(parts));
}

}  // namespace meshard::optim
