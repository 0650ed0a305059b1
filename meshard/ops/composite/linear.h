#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// x W^T + b over the last dimension of `x`, with any dimensions before it: x [..., in], weight
/// [out, in], bias [out], result [..., out].
///
/// Nothing is flattened, neither here nor in the derivative: the weight's cotangent is one
/// contraction over all leading dimensions, so that each may stay sharded as it is (torch_xla's
/// XLAPatchedLinear). Only the cotangents that are asked for are recorded.
/// @error weight or bias of another rank or size.
Tensor linear(In x, In weight);
Tensor linear(In x, In weight, In bias);

}  // namespace meshard
