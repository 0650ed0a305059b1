#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The arccosine of each element in radians, from 0 to pi; NaN outside -1..1. Integers are computed
/// in f32.
Tensor acos(In x);

}  // namespace meshard
