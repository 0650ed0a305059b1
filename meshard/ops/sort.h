#pragma once
#include <cstdint>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

struct SortAttributes {
  std::int64_t dimension = 0;
  bool descending = false;
  MESHARD_FIELDS(dimension, descending)
};

/// The elements in order along a dimension. Stable: equal elements keep their order. NaN counts as
/// the largest.
Tensor sort(In x, std::int64_t dimension = -1, bool descending = false);

/// Several tensors of one shape, all rearranged as the first one is sorted.
/// @error no tensor; shapes that differ.
std::vector<Tensor> sort(const std::vector<Tensor>& tensors, std::int64_t dimension = -1,
                         bool descending = false, SourceLocation where = SourceLocation::current());

}  // namespace meshard
