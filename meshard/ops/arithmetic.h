// Arithmetic: sums, products, quotients, signs.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// a + b, element-wise. Broadcasts and promotes. Bools are rejected: use logical_or.
Tensor add(In a, In b);

/// a - b, element-wise. Broadcasts and promotes; unsigned integers wrap around.
Tensor subtract(In a, In b);

/// a * b, element-wise. Broadcasts and promotes. Bools are rejected: use logical_and.
Tensor multiply(In a, In b);

/// a / b, element-wise, in floating point: integers are computed in f32, as the array API standard
/// requires. Broadcasts and promotes.
Tensor divide(In a, In b);

/// The elements with their sign changed; unsigned integers wrap around.
Tensor negative(In x);

/// The magnitude of each element: real for complex numbers. Unsigned integers are unchanged. The
/// derivative at zero is 1, at complex zero 0.
Tensor abs(In x);

/// -1, 0 or 1 for elements below, at or above zero, also for -0.0; NaN stays NaN. The derivative is
/// zero. Of complex numbers x / |x|, and 0 for zero, with the derivative of that quotient.
Tensor sign(In x);

}  // namespace meshard
