#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The number whose hyperbolic tangent each element is; infinite at -1 and 1, NaN beyond. Integers
/// are computed in f32.
Tensor atanh(In x);

}  // namespace meshard
