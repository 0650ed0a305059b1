#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Dropout: zeroes each element with probability `rate` and rescales the others. They are divided
/// by 1 - rate, which preserves the mean (Srivastava et al., 2014). `key` is a random key: the same
/// key drops the same elements on any mesh. Outside training omit the call.
/// @error rate is not in 0 to 1; `key` is not a key.
Tensor dropout(In x, double rate, In key);

}  // namespace meshard
