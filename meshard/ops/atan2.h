#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The angle in radians, from -pi to pi, of the point (x, y) = (b, a). Integers are computed in
/// f32. Broadcasts and promotes.
Tensor atan2(In a, In b);

}  // namespace meshard
