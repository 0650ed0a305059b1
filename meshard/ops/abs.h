#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The magnitude of each element: a real number for complex ones; unsigned integers stay as they
/// are. The derivative at zero is zero.
Tensor abs(In x);

}  // namespace meshard
