#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// 1 / (1 + exp(-x)) of each element, also known as sigmoid. Integers are computed in f32.
Tensor logistic(In x);

}  // namespace meshard
