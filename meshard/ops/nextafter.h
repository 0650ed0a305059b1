#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The next representable number after a in the direction of b; b where they are equal. Broadcasts
/// and promotes; integers are computed in f32.
Tensor nextafter(In a, In b);

}  // namespace meshard
