#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The inverse of the error function: erf_inv(erf(x)) = x; infinite at -1 and 1, NaN outside.
/// Integers are computed in f32.
Tensor erf_inv(In x);

}  // namespace meshard
