#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The inverse hyperbolic tangent of each element; infinite at -1 and 1, NaN outside. Integers are
/// computed in f32.
Tensor atanh(In x);

}  // namespace meshard
