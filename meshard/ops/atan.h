#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The angle in -pi/2..pi/2 whose tangent each element is, in radians. Integers are computed in
/// f32.
Tensor atan(In x);

}  // namespace meshard
