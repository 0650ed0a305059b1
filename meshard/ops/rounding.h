#pragma once
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

}  // namespace meshard
