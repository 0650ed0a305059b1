#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The natural logarithm of each element; NaN below zero. Integers are computed in f32.
Tensor log(In x);

}  // namespace meshard
