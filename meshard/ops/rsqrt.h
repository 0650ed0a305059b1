#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// One over the square root of each element. Integers are computed in f32.
Tensor rsqrt(In x);

}  // namespace meshard
