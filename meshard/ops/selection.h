// Ops that select one of several values for each element.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Elements of `a` where `condition` (bools) is true, of `b` elsewhere. All three broadcast; a and
/// b are promoted. An element that is not selected receives no cotangent.
Tensor where(In condition, In a, In b);

/// The larger of each pair of elements; NaN if either is NaN. Broadcasts and promotes. Equal
/// elements share the cotangent.
Tensor maximum(In a, In b);

/// The smaller of each pair of elements; NaN if either is NaN. Broadcasts and promotes. Equal
/// elements share the cotangent.
Tensor minimum(In a, In b);

/// Clamps each element to the range from `min` to `max`. The bounds are numbers or tensors; all
/// three broadcast and promote. Where min is above max the result is max. For one bound only use
/// maximum or minimum. The derivatives equal those of minimum(maximum(x, min), max): the cotangent
/// of an element inside the range goes to the element, of one outside to the bound, and at a bound
/// each receives half.
Tensor clip(In x, In min, In max);

}  // namespace meshard
