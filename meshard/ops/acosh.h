#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The inverse hyperbolic cosine (>= 0) of each element; NaN below 1. Integers are computed in f32.
Tensor acosh(In x);

}  // namespace meshard
