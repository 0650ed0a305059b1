#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The hyperbolic cosine of each element. Integers are computed in f32.
Tensor cosh(In x);

}  // namespace meshard
