#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The arctangent of each element in radians, from -pi/2 to pi/2. Integers are computed in f32.
Tensor atan(In x);

}  // namespace meshard
