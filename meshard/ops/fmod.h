#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The remainder of the division truncated toward zero, as C's fmod: it has the sign of the
/// dividend. Also for integers, which give 0 when divided by 0 (floats NaN). remainder has the sign
/// of the divisor. Broadcasts and promotes.
Tensor fmod(In a, In b);

}  // namespace meshard
