#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

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
