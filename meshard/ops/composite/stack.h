// Stacking, unstacking and splitting of tensors.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// Stacks tensors of one shape along a new dimension of the result: `stack({a, b}, 0)`.
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t dimension = 0,
             SourceLocation where = SourceLocation::current());

/// The slices of `x` along a dimension, which is removed from each: the inverse of stack.
std::vector<Tensor> unstack(In x, std::int64_t dimension = 0);

/// Splits `x` into `count` equal parts along a dimension.
/// @error the size is not a multiple of count.
std::vector<Tensor> split(In x, std::int64_t count, std::int64_t dimension = 0);

/// Splits `x` into parts of these sizes along a dimension: `split_sizes(x, {2, 3, 3}, 1)`.
/// @error the sizes do not add up to that of the dimension.
std::vector<Tensor> split_sizes(In x, Dimensions sizes, std::int64_t dimension = 0);

}  // namespace meshard
