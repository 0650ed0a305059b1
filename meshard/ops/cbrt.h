#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The real cube root of each element, also of negative ones. Integers are computed in f32.
Tensor cbrt(In x);

}  // namespace meshard
