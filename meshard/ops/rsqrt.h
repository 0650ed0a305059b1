#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The reciprocal square root of each element. Integers are computed in f32.
Tensor rsqrt(In x);

}  // namespace meshard
