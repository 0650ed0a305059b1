#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The cube root of each element, of negative ones too. Integers are computed in f32.
Tensor cbrt(In x);

}  // namespace meshard
