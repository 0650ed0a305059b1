#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct PermuteDimsAttributes {
  Dimensions permutation;  ///< dimension i of the result is dimension permutation[i] of the operand
  MESHARD_FIELDS(permutation)
};

/// Permutes the dimensions: dimension i of the result is dimension permutation[i] of `x`.
Tensor permute_dims(In x, Dimensions permutation);
/// Reverses the order of the dimensions; a matrix is transposed.
Tensor permute_dims(In x);

}  // namespace meshard
