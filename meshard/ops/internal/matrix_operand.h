// Helpers for ops on matrices, the last two dimensions of a tensor.
#pragma once
#include "meshard/graph/op_def.h"

namespace meshard::internal {

/// Checks that an operand consists of matrices, square ones if `square`. Their dtype must be
/// complex or a float of 32 bits or more. @error through call.fail
void check_matrix(const OpCall& call, const TensorType& operand, bool square);

/// One factor per dimension: the last `last` of them are needed whole, the others pass through.
InlineVector<int, 6> factors_with_whole_last(ShardingRuleBuilder& builder, const Shape& shape,
                                             int last);

/// The matrices, transposed.
Tensor transposed(const Tensor& x);
/// Transposed and conjugated.
Tensor adjoint(const Tensor& x);
/// conj(x); `x` itself if it is real.
Tensor conjugated(const Tensor& x);

}  // namespace meshard::internal
