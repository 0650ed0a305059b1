#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The arcsine of each element in radians, from -pi/2 to pi/2; NaN outside -1..1. Integers are
/// computed in f32.
Tensor asin(In x);

}  // namespace meshard
