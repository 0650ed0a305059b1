#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// a + b, element-wise. Broadcasts and promotes. Bools are rejected: use logical_or.
Tensor add(In a, In b);

}  // namespace meshard
