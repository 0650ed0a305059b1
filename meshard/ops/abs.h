#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The magnitude of each element: real for complex numbers. Unsigned integers are unchanged. The
/// derivative at zero is 1, at complex zero 0.
Tensor abs(In x);

}  // namespace meshard
