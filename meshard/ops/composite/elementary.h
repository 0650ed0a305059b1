// Element-wise functions made of primitives.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// x * x, element-wise.
Tensor square(In x);

/// 2 to the power of each element. Integers are computed in f32.
Tensor exp2(In x);
/// The base-2 (base-10) logarithm of each element. Integers are computed in f32.
Tensor log2(In x);
Tensor log10(In x);

/// log(exp(a) + exp(b)), computed without overflow. Broadcasts and promotes; integers are computed
/// in f32.
Tensor logaddexp(In a, In b);

/// True where an element's sign bit is set: negative numbers, -0.0, and NaN with that bit. Integers
/// are converted to f32 first.
Tensor signbit(In x);

/// The magnitude of each element of a with the sign of b's, also for zeros and NaNs. Broadcasts and
/// promotes; integers are computed in f32. The derivative with respect to b is zero.
Tensor copysign(In a, In b);

/// sqrt(a^2 + b^2), computed without overflow; infinite if either is, even if the other is NaN.
/// Broadcasts and promotes; integers are computed in f32.
Tensor hypot(In a, In b);

/// 1 / x. Integers are computed in f32.
Tensor reciprocal(In x);

/// True where an element is NaN.
Tensor isnan(In x);
/// True where an element is infinite, of either sign.
Tensor isinf(In x);

}  // namespace meshard
