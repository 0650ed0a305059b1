// Rounding: to whole numbers, to fewer bits, to the next number.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

// Rounding to whole numbers, element-wise. The dtype is unchanged; integers are returned as they
// are. The derivative is zero.

/// The largest whole number that is not above the element.
Tensor floor(In x);
/// The smallest whole number that is not below the element.
Tensor ceil(In x);
/// The nearest whole number; ties round to even.
Tensor round(In x);
/// The nearest whole number; ties round away from zero. Named as in StableHLO.
Tensor round_nearest_afz(In x);
/// The element truncated toward zero.
Tensor trunc(In x);

/// Rounds the elements to a float format with fewer bits; the dtype is unchanged. 5 exponent and 10
/// mantissa bits are f16, 8 and 7 are bf16. Ties round to even; a number that is too large becomes
/// infinite. The cotangent is rounded in the same way. Integers are computed in f32.
/// @error exponent_bits < 1 or mantissa_bits < 0.
Tensor reduce_precision(In x, std::int64_t exponent_bits, std::int64_t mantissa_bits);

/// The next representable number after a in the direction of b; b where they are equal. Broadcasts
/// and promotes; integers are computed in f32.
Tensor nextafter(In a, In b);

}  // namespace meshard
