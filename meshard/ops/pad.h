#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct PadAttributes {
  Dimensions low, high, interior;
  MESHARD_FIELDS(low, high, interior)
};

/// Puts copies of the scalar `value` around and between the elements: low[d] before the first of
/// dimension d, high[d] after the last, interior[d] between neighbours (left out: none). Negative
/// low and high cut elements off, after the interior was filled.
/// @error a negative interior; more is cut off than there is.
Tensor pad(In x, In value, Dimensions low, Dimensions high, Dimensions interior = {});

}  // namespace meshard
