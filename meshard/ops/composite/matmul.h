// Products of matrices and tensors.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The matrix product, with the array API standard's rules: the last two dimensions are the
/// matrices', all before them broadcast; a vector on the left is a row, one on the right a column,
/// and that dimension does not stay. dtypes are promoted. `result_sharding` as in dot_general.
/// @error a scalar; sizes that do not go together; a result_sharding of another rank.
Tensor matmul(In a, In b, std::optional<Sharding> result_sharding = std::nullopt);

/// The sum of products over dimensions a_dimensions[i] of a and b_dimensions[i] of b. The result's
/// dimensions: the rest of a, then the rest of b.
Tensor tensordot(In a, In b, Dimensions a_dimensions, Dimensions b_dimensions);
/// Over the last `count` dimensions of a and the first of b.
Tensor tensordot(In a, In b, std::int64_t count = 2);

/// The products of every element of one vector with every element of another.
/// @error an operand is not a vector.
Tensor outer(In a, In b);

}  // namespace meshard
