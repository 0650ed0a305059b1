// Helpers for ops on matrices, the last two dimensions of a tensor.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "meshard/graph/op_def.h"

namespace meshard::internal {

/// The dimensions of a batch, those before the last `own`, followed by `last`.
Shape batch_then(const Shape& shape, std::initializer_list<std::int64_t> last, int own = 2);
/// The distance from 1 to the next number, in the precision in which matrices of `dtype` are
/// factorized: f64 or f32.
double epsilon_of(DType dtype);

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

/// Numbers [...] as matrices of one element, [..., 1, 1].
Tensor as_matrices(const Tensor& numbers);
/// Ones on the diagonal of each matrix, which need not be square.
Tensor unit_matrices(const TensorType& type);
/// `x` [..., more] where `ok` [...] is true, otherwise NaN.
Tensor or_nan(Tensor ok, const Tensor& x);

/// The matrices, transposed.
Tensor transposed(const Tensor& x);
/// Transposed and conjugated.
Tensor adjoint(const Tensor& x);
/// conj(x); `x` itself if it is real.
Tensor conjugated(const Tensor& x);

}  // namespace meshard::internal
