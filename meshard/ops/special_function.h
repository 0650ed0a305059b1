// Special functions: error functions and the gamma function's relatives.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The error function of each element. Integers are computed in f32.
Tensor erf(In x);

/// 1 - erf(x), accurate also where the result is close to 0. Integers are computed in f32.
Tensor erfc(In x);

/// The inverse of the error function: erf_inv(erf(x)) = x; infinite at -1 and 1, NaN outside.
/// Integers are computed in f32.
Tensor erf_inv(In x);

/// The logarithm of the absolute value of the gamma function. Integers are computed in f32.
Tensor lgamma(In x);

/// The derivative of lgamma; NaN at 0, -1, -2, ... Integers are computed in f32.
Tensor digamma(In x);

/// The derivative of digamma of order `order` at x; order 0 is digamma itself. NaN unless `order`
/// is a whole number >= 0. Broadcasts and promotes; integers are computed in f32.
/// @error when differentiated with respect to the order.
Tensor polygamma(In order, In x);

/// The Hurwitz zeta function, the sum of (q + k)^-s over k >= 0, for s > 1. Broadcasts and
/// promotes; integers are computed in f32.
/// @error when differentiated with respect to s.
Tensor zeta(In s, In q);

}  // namespace meshard
