// What follows from sorting.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The indices (i32; i64 where that is too small) that sort `x` along a dimension; equal elements
/// keep their order.
Tensor argsort(In x, std::int64_t dimension = -1, bool descending = false);

/// The k largest elements along a dimension, the largest first, and their indices. Of equal
/// elements the one with the lower index comes first.
struct TopK {
  Tensor values, indices;
  MESHARD_FIELDS(values, indices)
};
/// @error k is not in 0..size of the dimension.
TopK top_k(In x, std::int64_t k, std::int64_t dimension = -1);

}  // namespace meshard
