#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// a / b, element by element, in floating point: integers are computed in f32, as the array API has
/// it. Broadcasts and promotes.
Tensor divide(In a, In b);

}  // namespace meshard
