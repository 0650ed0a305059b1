#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The exponential (base e) of each element. Integers are computed in f32.
Tensor exp(In x);

}  // namespace meshard
