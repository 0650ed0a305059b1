#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The quotient of integers truncated toward zero, as in C++; fmod is the remainder. Broadcasts and
/// promotes. The result of a division by zero depends on the plugin.
/// @error operands that are not integers: use divide.
Tensor truncated_divide(In a, In b);

}  // namespace meshard
