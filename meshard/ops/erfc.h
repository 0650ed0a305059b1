#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// 1 - erf(x), accurate also where the result is close to 0. Integers are computed in f32.
Tensor erfc(In x);

}  // namespace meshard
