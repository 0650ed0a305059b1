// Helpers for ops on matrices, the last two dimensions of a tensor.
#pragma once
#include <utility>

#include "meshard/graph/op_def.h"

namespace meshard::internal {

/// Checks that an operand consists of matrices, square ones if `square`. Their dtype must be
/// complex or a float of 32 bits or more. @error through call.fail
void check_matrix(const OpCall& call, const TensorType& operand, bool square);

/// The sharding rule of ops on batches of matrices: the dimensions before the last two of operand 0
/// pass through, in all operands and results; all others are needed whole.
ShardingRule batch_of_matrices_rule(const OpCall& call);
/// The same for batches of vectors: all dimensions but the last.
ShardingRule batch_of_vectors_rule(const OpCall& call);

/// The operand of a function of (square) matrices. @error invalid argument for anything else
Tensor matrices(std::string_view name, const In& x);
Tensor square_matrices(std::string_view name, const In& x);
/// Converts integers and narrow floats to f32, in which matrices are factorized.
Tensor for_factors(const Tensor& x);
/// The result of a computation on for_factors(operands of `dtype`), in `dtype` if it is a float.
Tensor from_factors(const Tensor& result, DType dtype);

/// Both matrices, with their dimensions before the last two broadcast with each other.
std::pair<Tensor, Tensor> with_common_batch(const Tensor& a, const Tensor& b);

/// The matrices, transposed.
Tensor transposed(const Tensor& x);
/// Transposed and conjugated.
Tensor adjoint(const Tensor& x);
/// conj(x); `x` itself if it is real.
Tensor conjugated(const Tensor& x);

}  // namespace meshard::internal
