// Ops that move elements: permuted dimensions, reversed, joined, padded.
#pragma once
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// Permutes the dimensions: dimension i of the result is dimension permutation[i] of `x`.
Tensor permute_dims(In x, Dimensions permutation);
/// Reverses the order of the dimensions; a matrix is transposed.
Tensor permute_dims(In x);

/// Reverses the elements along the dimensions, by default all of them.
Tensor flip(In x, DimensionList dimensions = {});

/// Concatenates the tensors along `dimension`: `concat({a, b}, 1)`. dtypes are promoted.
/// @error no tensors; sizes that differ in another dimension.
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t dimension = 0,
              SourceLocation where = SourceLocation::current());

/// Pads `x` with copies of the scalar `value`, at the edges and between elements. low[d] copies
/// before the first element of dimension d, high[d] after the last, interior[d] between neighbors
/// (default: none). Negative low and high remove elements, after the interior was filled.
/// @error a negative interior; more elements are removed than there are.
Tensor pad(In x, In value, Dimensions low, Dimensions high, Dimensions interior = {});

}  // namespace meshard
