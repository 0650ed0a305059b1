#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The square root of each element; NaN below zero. Integers are computed in f32.
Tensor sqrt(In x);

}  // namespace meshard
