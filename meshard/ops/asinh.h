#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The number whose hyperbolic sine each element is. Integers are computed in f32.
Tensor asinh(In x);

}  // namespace meshard
