#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// True where an element is neither infinite nor NaN.
Tensor isfinite(In x);

}  // namespace meshard
