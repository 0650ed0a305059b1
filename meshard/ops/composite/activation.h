// Activation functions, and dropout. Floats keep their dtype; integers are computed in f32.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// max(x, 0); NaN stays NaN. The derivative at zero is zero.
Tensor relu(In x);

/// min(relu(x), 6). The derivative is zero at 0 and at 6.
Tensor relu6(In x);

/// x where x >= 0, negative_slope * x below.
Tensor leaky_relu(In x, double negative_slope = 0.01);

/// x where x > 0, alpha * (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, 2016).
Tensor elu(In x, double alpha = 1);

/// x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere: elu with a continuous derivative (Barron,
/// 2017).
Tensor celu(In x, double alpha = 1);

/// Scaled elu, which preserves mean 0 and variance 1 from layer to layer. (Klambauer, Unterthiner,
/// Mayr and Hochreiter, 2017.)
Tensor selu(In x);

/// The formula that gelu uses.
enum class GeluForm {
  kTanh,  ///< x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), an approximation, cheaper
  kErf,   ///< x / 2 * (1 + erf(x / sqrt(2))), the definition
};
/// The Gaussian error linear unit (Hendrycks and Gimpel, 2016).
Tensor gelu(In x, GeluForm form = GeluForm::kTanh);

/// x * logistic(x), also known as swish.
Tensor silu(In x);

/// x * tanh(softplus(x)) (Misra, 2019).
Tensor mish(In x);

/// log(1 + exp(x)), computed without overflow.
Tensor softplus(In x);

/// log(logistic(x)), computed without overflow.
Tensor log_sigmoid(In x);

/// x / (1 + |x|).
Tensor soft_sign(In x);

/// x clamped to -1..1. The derivative is one at both ends.
Tensor hard_tanh(In x);

/// relu6(x + 3) / 6: a piecewise linear logistic function.
Tensor hard_sigmoid(In x);

/// x * hard_sigmoid(x), also known as hard swish.
Tensor hard_silu(In x);

/// Gated linear unit: the first half of x times logistic of the second half along a dimension
/// (Dauphin, Fan, Auli and Grangier, 2017).
/// @error the size of the dimension is odd.
Tensor glu(In x, std::int64_t dimension = -1);

/// silu(gate) * x and gelu(gate) * x: the activation of a gated MLP, between its two input
/// projections and its output projection (Shazeer: GLU Variants Improve Transformer, 2020).
Tensor swiglu(In gate, In x);
Tensor geglu(In gate, In x, GeluForm form = GeluForm::kTanh);

/// Dropout: zeroes each element with probability `rate` and rescales the others. They are divided
/// by 1 - rate, which preserves the mean (Srivastava et al., 2014). `key` is a random key: the same
/// key drops the same elements on any mesh. Outside training omit the call.
/// @error rate is not in 0 to 1; `key` is not a key.
Tensor dropout(In x, double rate, In key);

}  // namespace meshard
