#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The remainder of a / b with the sign of b, also where it is zero: a - floor(a / b) * b,
/// element-wise. Integers divided by 0 give 0, floats NaN. Broadcasts and promotes.
Tensor remainder(In a, In b);

}  // namespace meshard
