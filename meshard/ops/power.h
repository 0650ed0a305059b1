// Powers and roots.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// a to the power b, element-wise. Broadcasts and promotes. Integers stay integers; a negative
/// exponent is then meaningful only for bases 1 and -1. A C++ integer as exponent is the cheapest.
Tensor pow(In a, In b);

/// The square root of each element; NaN below zero. Integers are computed in f32.
Tensor sqrt(In x);

/// The reciprocal square root of each element. Integers are computed in f32.
Tensor rsqrt(In x);

/// The real cube root of each element, also of negative ones. Integers are computed in f32.
Tensor cbrt(In x);

}  // namespace meshard
