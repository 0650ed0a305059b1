#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct PermuteDimsAttributes {
  Dimensions permutation;  ///< dimension i of the result is dimension permutation[i] of the operand
  MESHARD_FIELDS(permutation)
};

/// The dimensions in another order: dimension i of the result is dimension permutation[i] of `x`.
Tensor permute_dims(In x, Dimensions permutation);
/// The dimensions in reverse order; a matrix is transposed.
Tensor permute_dims(In x);

}  // namespace meshard
