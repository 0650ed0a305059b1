// Exponentials of base 2, and logarithms of base 2 and 10.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// 2 to the power of each element. Integers are computed in f32.
Tensor exp2(In x);
/// The base-2 (base-10) logarithm of each element. Integers are computed in f32.
Tensor log2(In x);
Tensor log10(In x);

}  // namespace meshard
