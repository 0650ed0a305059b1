#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// a - b, element-wise. Broadcasts and promotes; unsigned integers wrap around.
Tensor subtract(In a, In b);

}  // namespace meshard
