#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The angle in 0..pi whose cosine each element is, in radians; NaN outside -1..1. Integers are
/// computed in f32.
Tensor acos(In x);

}  // namespace meshard
