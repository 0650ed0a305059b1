// Functions based on sorting.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The indices that sort `x` along a dimension, in i32 (i64 if that is too small). Equal elements
/// keep their order.
Tensor argsort(In x, std::int64_t dimension = -1, bool descending = false);

/// The k largest elements along a dimension, in descending order, and their indices. Of equal
/// elements the one with the lower index comes first.
struct TopK {
  Tensor values, indices;
  MESHARD_FIELDS(values, indices)
};
/// @error k is not in 0..size of the dimension.
TopK top_k(In x, std::int64_t k, std::int64_t dimension = -1);

}  // namespace meshard
