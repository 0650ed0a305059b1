#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// x * x, element by element.
Tensor square(In x);

}  // namespace meshard
