#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The Hurwitz zeta function, the sum of (q + k)^-s over k >= 0, for s > 1. Broadcasts and
/// promotes; integers are computed in f32.
/// @error when differentiated with respect to s.
Tensor zeta(In s, In q);

}  // namespace meshard
