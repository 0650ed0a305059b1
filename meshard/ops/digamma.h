#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The derivative of lgamma; NaN at 0, -1, -2, ... Integers are computed in f32.
Tensor digamma(In x);

}  // namespace meshard
