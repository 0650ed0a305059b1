#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The smaller of each pair of elements; NaN if either is NaN. Broadcasts and promotes. Equal
/// elements share the cotangent.
Tensor minimum(In a, In b);

}  // namespace meshard
