#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The derivative of digamma of order `order` at x; order 0 is digamma itself. NaN unless `order`
/// is a whole number >= 0. Broadcasts and promotes; integers are computed in f32.
/// @error when differentiated with respect to the order.
Tensor polygamma(In order, In x);

}  // namespace meshard
