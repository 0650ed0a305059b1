// Tests for NaN and infinity. isfinite is a primitive.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// True where an element is NaN.
Tensor isnan(In x);
/// True where an element is infinite, of either sign.
Tensor isinf(In x);

}  // namespace meshard
