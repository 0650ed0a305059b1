#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// x W^T + b over the last dimension of `x`. x is [..., in], with any number of dimensions before
/// the last, weight [out, in], bias [out], the result [..., out].
///
/// Nothing is flattened, neither here nor in the derivative: the weight's cotangent is one
/// contraction over all leading dimensions, so that each of them can stay sharded (torch_xla's
/// XLAPatchedLinear). Only the required cotangents are recorded.
/// @error weight or bias of another rank or size.
Tensor linear(In x, In weight);
Tensor linear(In x, In weight, In bias);

}  // namespace meshard
