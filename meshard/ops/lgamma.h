#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The logarithm of the absolute value of the gamma function. Integers are computed in f32.
Tensor lgamma(In x);

}  // namespace meshard
