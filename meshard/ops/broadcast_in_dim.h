#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct BroadcastInDimAttributes {
  Shape shape;
  Dimensions dimensions;  ///< for each dimension of the operand, the result's dimension
  MESHARD_FIELDS(shape, dimensions)
};

/// Stretches `x` to `shape`: its dimension i becomes dimension dimensions[i] of the result, a size
/// of 1 is repeated, and dimensions not named are new. `dimensions` is ascending; negative counts
/// from the last.
Tensor broadcast_in_dim(In x, Shape shape, Dimensions dimensions);

/// Stretches `x` to `shape` as NumPy does: dimensions are aligned at the last, a size of 1 is
/// repeated, missing leading dimensions are new. @error invalid argument naming both shapes.
Tensor broadcast_to(In x, Shape shape);

}  // namespace meshard
