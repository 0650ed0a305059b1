#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// a * b, element by element. Broadcasts and promotes. Bools are refused: say logical_and.
Tensor multiply(In a, In b);

}  // namespace meshard
