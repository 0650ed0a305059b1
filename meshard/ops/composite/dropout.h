#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Each element zero with probability `rate`, else divided by 1 - rate, so that the mean stays
/// (Srivastava et al., 2014). `key` is a key of random numbers: the same one, the same elements, on
/// any mesh. Outside training leave the call out.
/// @error rate is not in 0 to 1; `key` is not a key.
Tensor dropout(In x, double rate, In key);

}  // namespace meshard
