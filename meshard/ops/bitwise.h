#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

// Operations on the bits of integers, element by element; on bools all but the shifts are logic.
// They broadcast and promote. Floats are refused.

/// a & b
Tensor bitwise_and(In a, In b);
/// a | b
Tensor bitwise_or(In a, In b);
/// a ^ b
Tensor bitwise_xor(In a, In b);
/// ~x
Tensor bitwise_invert(In x);
/// a << b: zeros come in. Shifting by the width or more gives 0.
Tensor bitwise_left_shift(In a, In b);
/// a >> b: copies of the sign bit come in for signed integers, zeros for unsigned ones. Shifting by
/// the width or more leaves only those.
Tensor bitwise_right_shift(In a, In b);
/// a >> b with zeros coming in, for signed integers too. Shifting by the width or more gives 0.
Tensor shift_right_logical(In a, In b);
/// How many bits of each element are one, in its dtype. Integers only.
Tensor popcnt(In x);
/// How many bits of each element above its highest one are zero, in its dtype: the width for 0.
/// Integers only.
Tensor count_leading_zeros(In x);

}  // namespace meshard
