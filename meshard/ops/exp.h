#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// e to the power of each element. Integers are computed in f32.
Tensor exp(In x);

}  // namespace meshard
