#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct PadAttributes {
  Dimensions low, high, interior;
  MESHARD_FIELDS(low, high, interior)
};

/// Pads `x` with copies of the scalar `value`, at the edges and between elements. low[d] copies
/// before the first element of dimension d, high[d] after the last, interior[d] between neighbors
/// (default: none). Negative low and high remove elements, after the interior was filled.
/// @error a negative interior; more elements are removed than there are.
Tensor pad(In x, In value, Dimensions low, Dimensions high, Dimensions interior = {});

}  // namespace meshard
