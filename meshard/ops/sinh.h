#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The hyperbolic sine of each element. Integers are computed in f32.
Tensor sinh(In x);

}  // namespace meshard
