#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Each element kept between `min` and `max`, which are numbers or tensors; all three broadcast and
/// promote. Where min is above max the result is max. For one bound only use maximum or minimum.
/// The derivatives are those of minimum(maximum(x, min), max): an element inside passes its
/// cotangent on, one beyond gives it to the bound, and at a bound each receives half.
Tensor clip(In x, In min, In max);

}  // namespace meshard
