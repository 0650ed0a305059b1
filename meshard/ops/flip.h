#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

struct FlipAttributes {
  Dimensions dimensions;  ///< ascending, not negative
  MESHARD_FIELDS(dimensions)
};

/// Reverses the elements along the dimensions, by default all of them.
Tensor flip(In x, DimensionList dimensions = {});

}  // namespace meshard
