#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The inverse hyperbolic sine of each element. Integers are computed in f32.
Tensor asinh(In x);

}  // namespace meshard
