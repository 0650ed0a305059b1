#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// a to the power b, element by element. Broadcasts and promotes. Integers stay integers; a
/// negative exponent is then meaningful for bases 1 and -1 only. A whole C++ number as exponent is
/// the cheapest.
Tensor pow(In a, In b);

}  // namespace meshard
