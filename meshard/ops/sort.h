#pragma once
#include <cstdint>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

struct SortAttributes {
  std::int64_t dimension = 0;
  bool descending = false;
  std::int64_t keys = 1;  ///< the first so many operands are compared, the first one first
  MESHARD_FIELDS(dimension, descending, keys)
};

/// The elements in order along a dimension. Stable: equal elements keep their order. NaN counts as
/// the largest.
Tensor sort(In x, std::int64_t dimension = -1, bool descending = false);

/// Several tensors of one shape, all rearranged as the first one is sorted; with more `keys`, where
/// the first ones are equal as the second one, and so on.
/// @error no tensor; shapes that differ; keys not in 1..number of tensors.
std::vector<Tensor> sort(const std::vector<Tensor>& tensors, std::int64_t dimension = -1,
                         bool descending = false, std::int64_t keys = 1,
                         SourceLocation where = SourceLocation::current());

}  // namespace meshard
