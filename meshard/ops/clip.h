#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Clamps each element to the range from `min` to `max`. The bounds are numbers or tensors; all
/// three broadcast and promote. Where min is above max the result is max. For one bound only use
/// maximum or minimum. The derivatives are those of minimum(maximum(x, min), max): the cotangent of
/// an element inside the range goes to the element, of one outside to the bound, and at a bound
/// each receives half.
Tensor clip(In x, In min, In max);

}  // namespace meshard
