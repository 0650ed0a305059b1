#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The error function of each element. Integers are computed in f32.
Tensor erf(In x);

}  // namespace meshard
