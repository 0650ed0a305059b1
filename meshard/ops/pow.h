#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// a to the power b, element-wise. Broadcasts and promotes. Integers stay integers; a negative
/// exponent is then meaningful only for bases 1 and -1. A C++ integer as exponent is the cheapest.
Tensor pow(In a, In b);

}  // namespace meshard
