#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// a / b, element-wise, in floating point: integers are computed in f32, as the array API standard
/// requires. Broadcasts and promotes.
Tensor divide(In a, In b);

}  // namespace meshard
