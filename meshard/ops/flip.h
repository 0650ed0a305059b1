#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

struct FlipAttributes {
  Dimensions dimensions;  ///< ascending, not negative
  MESHARD_FIELDS(dimensions)
};

/// The elements in reverse order along the dimensions; all of them if left out.
Tensor flip(In x, DimensionList dimensions = {});

}  // namespace meshard
