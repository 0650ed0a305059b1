#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct BroadcastInDimAttributes {
  Shape shape;
  Dimensions dimensions;  ///< the result's dimension for each dimension of the operand
  MESHARD_FIELDS(shape, dimensions)
};

/// Broadcasts `x` to `shape` with an explicit dimension mapping. Dimension i of `x` becomes
/// dimension dimensions[i] of the result, a size of 1 is repeated, and dimensions not named are
/// new. `dimensions` is ascending; negative counts from the last.
Tensor broadcast_in_dim(In x, Shape shape, Dimensions dimensions);

/// Broadcasts `x` to `shape` as NumPy does: dimensions are aligned at the last, a size of 1 is
/// repeated, missing leading dimensions are new. @error invalid argument naming both shapes.
Tensor broadcast_to(In x, Shape shape);

}  // namespace meshard
