#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The sine of each element, in radians. Integers are computed in f32.
Tensor sin(In x);

}  // namespace meshard
