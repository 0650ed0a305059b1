#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The angle in -pi/2..pi/2 whose sine each element is, in radians; NaN outside -1..1. Integers are
/// computed in f32.
Tensor asin(In x);

}  // namespace meshard
