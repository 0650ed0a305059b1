#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The remainder of the division rounded towards zero, with the sign of the dividend, as C's
/// function of this name; for integers too, which leave 0 if divided by 0 (floats NaN). remainder
/// has the sign of the divisor. Broadcasts and promotes.
Tensor fmod(In a, In b);

}  // namespace meshard
