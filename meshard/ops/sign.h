#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// -1, 0 or 1 for elements below, at or above zero; NaN stays NaN. The derivative is zero.
Tensor sign(In x);

}  // namespace meshard
