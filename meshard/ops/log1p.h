#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// log(1 + x), accurate also for small elements. Integers are computed in f32.
Tensor log1p(In x);

}  // namespace meshard
