// What has to do with signs and sizes of numbers, and quotients.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// True where the sign bit of an element is set: for negative numbers, -0.0 and NaN with that bit.
/// Integers are converted to f32 first.
Tensor signbit(In x);

/// The size of each element of a with the sign of b's, also of its zeros and NaNs. Broadcasts and
/// promotes; integers are computed in f32. The derivative with respect to b is zero.
Tensor copysign(In a, In b);

/// sqrt(a^2 + b^2), without overflow on the way; infinite if either is, even beside a NaN.
/// Broadcasts and promotes; integers are computed in f32.
Tensor hypot(In a, In b);

/// 1 / x. Integers are computed in f32.
Tensor reciprocal(In x);

/// The quotient a / b rounded down to a whole number, so that remainder(a, b) is what is left.
/// Broadcasts and promotes; floats stay floats, bools are computed in i32. Its derivative is zero.
/// A float divided by zero is what divide gives; what an integer divided by zero gives is up to the
/// plugin. The quotient of floats is computed as Python does, from a - fmod(a, b), which is exact.
/// @error complex numbers.
Tensor floor_divide(In a, In b);

}  // namespace meshard
