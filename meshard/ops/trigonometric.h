// Trigonometric and hyperbolic functions, and their inverses.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The sine of each element, in radians. Integers are computed in f32.
Tensor sin(In x);

/// The cosine of each element, in radians. Integers are computed in f32.
Tensor cos(In x);

/// The tangent of each element, in radians. Integers are computed in f32.
Tensor tan(In x);

/// The arcsine of each element in radians, from -pi/2 to pi/2; NaN outside -1..1. Integers are
/// computed in f32.
Tensor asin(In x);

/// The arccosine of each element in radians, from 0 to pi; NaN outside -1..1. Integers are computed
/// in f32.
Tensor acos(In x);

/// The arctangent of each element in radians, from -pi/2 to pi/2. Integers are computed in f32.
Tensor atan(In x);

/// The angle in radians, from -pi to pi, of the point (x, y) = (b, a). Integers are computed in
/// f32. Broadcasts and promotes.
Tensor atan2(In a, In b);

/// The hyperbolic sine of each element. Integers are computed in f32.
Tensor sinh(In x);

/// The hyperbolic cosine of each element. Integers are computed in f32.
Tensor cosh(In x);

/// The hyperbolic tangent of each element. Integers are computed in f32.
Tensor tanh(In x);

/// The inverse hyperbolic sine of each element. Integers are computed in f32.
Tensor asinh(In x);

/// The inverse hyperbolic cosine (>= 0) of each element; NaN below 1. Integers are computed in f32.
Tensor acosh(In x);

/// The inverse hyperbolic tangent of each element; infinite at -1 and 1, NaN outside. Integers are
/// computed in f32.
Tensor atanh(In x);

}  // namespace meshard
