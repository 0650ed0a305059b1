#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// exp(x) - 1, accurate also for small elements. Integers are computed in f32.
Tensor expm1(In x);

}  // namespace meshard
