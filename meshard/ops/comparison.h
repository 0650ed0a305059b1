// Comparisons, and the logic of bools.
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

/// True where an element is neither infinite nor NaN.
Tensor isfinite(In x);

// Logical operations on bools, element-wise. Other dtypes are rejected: compare first, as in
// not_equal(x, 0).

/// a and b. Broadcasts.
Tensor logical_and(In a, In b);
/// a or b. Broadcasts.
Tensor logical_or(In a, In b);
/// Either a or b, not both. Broadcasts.
Tensor logical_xor(In a, In b);
/// not x
Tensor logical_not(In x);

}  // namespace meshard
