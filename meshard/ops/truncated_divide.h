#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The whole quotient of integers, rounded towards zero as in C++; fmod is the rest of it.
/// Broadcasts and promotes. What a division by zero gives is up to the plugin.
/// @error operands that are no integers: use divide.
Tensor truncated_divide(In a, In b);

}  // namespace meshard
