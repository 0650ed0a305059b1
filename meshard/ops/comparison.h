#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

// Element-wise comparisons, giving bools. They broadcast and promote. A comparison with NaN is
// false, except not_equal, which is true.

/// a == b
Tensor equal(In a, In b);
/// a != b
Tensor not_equal(In a, In b);
/// a < b
Tensor less(In a, In b);
/// a <= b
Tensor less_equal(In a, In b);
/// a > b
Tensor greater(In a, In b);
/// a >= b
Tensor greater_equal(In a, In b);

}  // namespace meshard
