#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// x * x, element-wise.
Tensor square(In x);

}  // namespace meshard
