#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The remainder of a / b with the sign of b: a - floor(a / b) * b, element by element. Integers
/// leave 0 if divided by 0, floats NaN. Broadcasts and promotes.
Tensor remainder(In a, In b);

}  // namespace meshard
