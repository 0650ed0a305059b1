#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// -1, 0 or 1 for elements below, at or above zero, also for -0.0; NaN stays NaN. The derivative is
/// zero. Of complex numbers x / |x|, and 0 for zero, with the derivative of that quotient.
Tensor sign(In x);

}  // namespace meshard
