#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The number from 0 up whose hyperbolic cosine each element is; NaN below 1. Integers are computed
/// in f32.
Tensor acosh(In x);

}  // namespace meshard
