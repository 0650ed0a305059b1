#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// `x` itself; it passes no cotangent on.
Tensor stop_gradient(In x);

}  // namespace meshard
