#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The hyperbolic tangent of each element. Integers are computed in f32.
Tensor tanh(In x);

}  // namespace meshard
