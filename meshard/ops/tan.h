#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The tangent of each element, in radians. Integers are computed in f32.
Tensor tan(In x);

}  // namespace meshard
