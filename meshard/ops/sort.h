#pragma once
#include <cstdint>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The elements sorted along a dimension, by default ascending. Stable: equal elements keep their
/// order. NaN counts as the largest.
Tensor sort(In x, std::int64_t dimension = -1, bool descending = false);

/// Sorts the first tensor and reorders the others, of the same shape, in the same way. With `keys`
/// > 1, ties in the first tensor are broken by the second, and so on.
/// @error no tensors; shapes that differ; keys not in 1..number of tensors.
std::vector<Tensor> sort(const std::vector<Tensor>& tensors, std::int64_t dimension = -1,
                         bool descending = false, std::int64_t keys = 1,
                         SourceLocation where = SourceLocation::current());

}  // namespace meshard
