#include "meshard/ops/composite/activation.h"

#include <numbers>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
using namespace internal;
namespace {

// x times a constant of the formula.
Tensor scaled(const Tensor& x, double by) {
  return by == 1 ? x : multiply(x, element_wise::literal(by, x));
}

// x where x > 0, scale * (exp(x / width) - 1) elsewhere.
Tensor exponential_below(const Tensor& x, double scale, double width) {
  Tensor above = greater(x, 0);
  // Where this branch is not selected, the power could overflow and its derivative be NaN.
  Tensor below = where(above, 0, x);
  if (width != 1) below = divide(below, element_wise::literal(width, x));
  return where(above, x, scaled(expm1(below), scale));
}

// x clamped to low..high; the derivative is zero at both ends.
Tensor between(const Tensor& x, double low, double high) {
  Tensor lower =
      where(less_equal(x, element_wise::literal(low, x)), element_wise::literal(low, x), x);
  return where(greater_equal(lower, element_wise::literal(high, x)), element_wise::literal(high, x),
               lower);
}

}  // namespace

Tensor relu(In argument) {
  SourceScope line(argument.where);
  Tensor x = real_operand("relu", argument);
  // Not maximum(x, 0), whose cotangent at zero is half.
  return where(less_equal(x, 0), 0, x);
}

Tensor relu6(In x) {
  SourceScope line(x.where);
  return between(real_floating_operand("relu6", x), 0, 6);
}

Tensor leaky_relu(In argument, double negative_slope) {
  SourceScope line(argument.where);
  Tensor x = real_floating_operand("leaky_relu", argument);
  return where(greater_equal(x, 0), x, scaled(x, negative_slope));
}

Tensor elu(In x, double alpha) {
  SourceScope line(x.where);
  return exponential_below(real_floating_operand("elu", x), alpha, 1);
}

Tensor celu(In x, double alpha) {
  SourceScope line(x.where);
  // As jax.nn.celu: at 0 both halves receive half of the derivative, and there is no second
  // derivative.
  Tensor operand = real_floating_operand("celu", x);
  Tensor power = divide(minimum(operand, 0), element_wise::literal(alpha, operand));
  return add(maximum(operand, 0), scaled(expm1(power), alpha));
}

Tensor selu(In x) {
  SourceScope line(x.where);
  // Klambauer et al., appendix A1: constants with the fixed point mean 0, variance 1.
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  constexpr double kScale = 1.0507009873554804934193349852946;
  return scaled(exponential_below(real_floating_operand("selu", x), kAlpha, 1), kScale);
}

Tensor gelu(In argument, GeluForm form) {
  SourceScope line(argument.where);
  // erf is defined for real numbers only; JAX applies the other form to complex ones too.
  Tensor x = form == GeluForm::kErf ? real_floating_operand("gelu with GeluForm::kErf", argument)
                                    : floating_operand("gelu", argument);
  // erfc avoids the cancellation in 1 + erf for large negative numbers.
  if (form == GeluForm::kErf)
    return multiply(scaled(x, 0.5), erfc(scaled(x, -std::numbers::sqrt2 / 2)));
  Tensor cube = multiply(x, multiply(x, x));
  Tensor inner = add(x, scaled(cube, 0.044715));
  // logistic(2 u) is (1 + tanh(u)) / 2 without cancellation for large negative u; u contains the
  // factor sqrt(2 / pi).
  return multiply(x, logistic(scaled(inner, 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi)));
}

Tensor silu(In x) {
  SourceScope line(x.where);
  return multiply(x, logistic(x));
}

Tensor mish(In argument) {
  SourceScope line(argument.where);
  Tensor x = real_operand("mish", argument);
  return multiply(x, tanh(softplus(x)));
}

Tensor softplus(In x) {
  SourceScope line(x.where);
  return logaddexp(real_operand("softplus", x), 0);
}

Tensor log_sigmoid(In x) {
  SourceScope line(x.where);
  return negative(softplus(negative(real_floating_operand("log_sigmoid", x))));
}

Tensor soft_sign(In argument) {
  SourceScope line(argument.where);
  Tensor x = floating_operand("soft_sign", argument);
  return divide(x, add(abs(x), 1));
}

Tensor hard_tanh(In argument) {
  SourceScope line(argument.where);
  Tensor x = real_floating_operand("hard_tanh", argument);
  return where(greater(x, 1), 1, where(less(x, -1), -1, x));
}

Tensor hard_sigmoid(In argument) {
  SourceScope line(argument.where);
  Tensor x = real_floating_operand("hard_sigmoid", argument);
  return divide(between(add(x, 3), 0, 6), 6);
}

Tensor hard_silu(In argument) {
  SourceScope line(argument.where);
  Tensor x = real_operand("hard_silu", argument);
  return multiply(x, hard_sigmoid(x));
}

Tensor glu(In argument, std::int64_t dimension) {
  SourceScope line(argument.where);
  SourceLocation place = effective_source(argument.where);
  Tensor x = floating_operand("glu", argument);
  int along = normalize_dimension(dimension, x.shape().rank(), "glu", place);
  if (x.shape()[along] % 2 != 0)
    throw_invalid(place, "[glu] dimension ", along, " = ", x.shape()[along], " of ", x.type(),
                  " cannot be split into two halves");
  std::vector<Tensor> halves = split(x, 2, along);
  return multiply(halves[0], logistic(halves[1]));
}

Tensor swiglu(In gate, In x) {
  SourceScope line(gate.where);
  return multiply(silu(gate), x);
}

Tensor geglu(In gate, In x, GeluForm form) {
  SourceScope line(gate.where);
  return multiply(gelu(gate, form), x);
}

Tensor dropout(In argument, double rate, In key) {
  SourceScope line(argument.where);
  SourceLocation place = effective_source(argument.where);
  if (!(rate >= 0 && rate <= 1))
    throw_invalid(place, "[dropout] rate = ", rate, " is outside 0 to 1");
  Tensor x = floating_operand("dropout", argument);
  if (rate == 0) return x;
  if (rate == 1) return zeros_like(x);
  // In f32 for every dtype of x: a narrow dtype would round the probability.
  Tensor kept = random::bernoulli(key, element_wise::literal(1 - rate, zeros({})), x.shape());
  return where(kept, divide(x, element_wise::literal(1 - rate, x)), zeros_like(x));
}

}  // namespace meshard
