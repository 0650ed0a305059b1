#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

// Rounding to whole numbers, element by element. The dtype stays; integers stay as they are. The
// derivative is zero.

/// The largest whole number that is not above.
Tensor floor(In x);
/// The smallest whole number that is not below.
Tensor ceil(In x);
/// The nearest whole number; halfway cases go to the even one.
Tensor round(In x);
/// The nearest whole number; halfway cases go away from zero. Named as in StableHLO.
Tensor round_nearest_afz(In x);
/// The nearest whole number towards zero.
Tensor trunc(In x);

}  // namespace meshard
