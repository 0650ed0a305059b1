#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The cosine of each element, in radians. Integers are computed in f32.
Tensor cos(In x);

}  // namespace meshard
