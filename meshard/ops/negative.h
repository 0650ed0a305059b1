#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The elements with their sign changed; unsigned integers wrap around.
Tensor negative(In x);

}  // namespace meshard
