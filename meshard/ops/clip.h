#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Each element kept between `min` and `max`, which are numbers or tensors; all three broadcast and
/// promote. Where min is above max the result is max. For one bound only use maximum or minimum. No
/// cotangent reaches an element at a bound or beyond; a bound gets it from the elements beyond.
Tensor clip(In x, In min, In max);

}  // namespace meshard
