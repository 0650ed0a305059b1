#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// `x` itself, through which no cotangent passes.
Tensor stop_gradient(In x);

}  // namespace meshard
