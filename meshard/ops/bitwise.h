#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

// Operations on the bits of integers, element-wise; on bools all except the shifts are logical
// operations. They broadcast and promote. Floats are rejected.

/// a & b
Tensor bitwise_and(In a, In b);
/// a | b
Tensor bitwise_or(In a, In b);
/// a ^ b
Tensor bitwise_xor(In a, In b);
/// ~x
Tensor bitwise_invert(In x);
/// a << b, shifting in zeros. Shifting by the width or more gives 0.
Tensor bitwise_left_shift(In a, In b);
/// a >> b, shifting in copies of the sign bit for signed integers and zeros for unsigned ones.
/// Shifting by the width or more leaves only those.
Tensor bitwise_right_shift(In a, In b);
/// a >> b, shifting in zeros, for signed integers too. Shifting by the width or more gives 0.
Tensor shift_right_logical(In a, In b);
/// The number of one bits of each element, in its dtype. Integers only.
Tensor popcnt(In x);
/// The number of leading zero bits of each element, in its dtype: the width for 0. Integers only.
Tensor count_leading_zeros(In x);

}  // namespace meshard
