#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The number next to a in the direction of b, in the dtype of both; b where they are equal.
/// Broadcasts and promotes; integers are computed in f32.
Tensor nextafter(In a, In b);

}  // namespace meshard
