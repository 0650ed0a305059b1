// Division of whole numbers, and remainders.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The quotient a / b rounded down to a whole number; remainder(a, b) is the corresponding
/// remainder. Broadcasts and promotes; floats stay floats, bools are computed in i32. Its
/// derivative is zero.
///
/// The quotient of finite floats is computed as in Python, from a - fmod(a, b), which is exact. If
/// a or b is infinite, or a zero, it is the floor of a / b, as the array API standard says: inf / 2
/// is inf, and -1 / inf is -0. A float divided by zero gives what divide gives; the result for an
/// integer divided by zero depends on the plugin.
/// @error complex numbers.
Tensor floor_divide(In a, In b);

/// The quotient of integers truncated toward zero, as in C++; fmod is the remainder. Broadcasts and
/// promotes. The result of a division by zero depends on the plugin.
/// @error operands that are not integers: use divide.
Tensor truncated_divide(In a, In b);

/// The remainder of the division truncated toward zero, as C's fmod: it has the sign of the
/// dividend. Also for integers, which give 0 when divided by 0 (floats NaN). remainder has the sign
/// of the divisor. Broadcasts and promotes.
Tensor fmod(In a, In b);

/// The remainder of a / b with the sign of b, also where it is zero: a - floor(a / b) * b,
/// element-wise. Integers divided by 0 give 0, floats NaN. Broadcasts and promotes.
Tensor remainder(In a, In b);

}  // namespace meshard
