// Activation functions.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// max(x, 0); NaN stays NaN. The derivative at zero is zero.
Tensor relu(In x);

/// Which formula gelu uses.
enum class GeluForm {
  kTanh,  ///< x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), close and cheaper
  kErf,   ///< x / 2 * (1 + erf(x / sqrt(2))), the definition
};
/// The Gaussian error linear unit (Hendrycks and Gimpel, 2016). Integers are computed in f32.
Tensor gelu(In x, GeluForm form = GeluForm::kTanh);

/// x * logistic(x), also known as swish.
Tensor silu(In x);

/// log(1 + exp(x)), without overflow.
Tensor softplus(In x);

}  // namespace meshard
