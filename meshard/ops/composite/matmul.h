// Products of matrices and tensors.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The matrix product, with the array API standard's rules. The last two dimensions are the
/// matrices', all before them broadcast; a vector on the left is a row, one on the right a column,
/// and that dimension is removed from the result. dtypes are promoted. `result_sharding` as in
/// dot_general.
/// @error a scalar; sizes that do not match; a result_sharding of another rank.
Tensor matmul(In a, In b, std::optional<Sharding> result_sharding = std::nullopt);

/// The sum of products over dimensions a_dimensions[i] of a and b_dimensions[i] of b. The result's
/// dimensions: the remaining ones of a, then those of b.
Tensor tensordot(In a, In b, Dimensions a_dimensions, Dimensions b_dimensions);
/// The same over the last `count` dimensions of a and the first `count` of b.
Tensor tensordot(In a, In b, std::int64_t count = 2);

/// The outer product of two vectors: every element of one times every element of the other.
/// @error an operand is not a vector.
Tensor outer(In a, In b);

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
