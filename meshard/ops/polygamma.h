#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The derivative of order `order` of digamma at x; of order 0 digamma itself. NaN unless `order`
/// is a whole number from 0 up. Broadcasts and promotes; integers are computed in f32.
/// @error when differentiated with respect to the order.
Tensor polygamma(In order, In x);

}  // namespace meshard
