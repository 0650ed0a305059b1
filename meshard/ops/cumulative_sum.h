#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// Attributes of every cumulative op.
struct CumulativeAttributes {
  std::int64_t dimension = 0;
  bool reverse = false;
  MESHARD_FIELDS(dimension, reverse)
};

/// The cumulative sums along a dimension: up to each element, or from each on if `reverse`. Dtypes
/// as in sum().
Tensor cumulative_sum(In x, std::int64_t dimension = -1, bool reverse = false);
/// The same, with one more element if `include_initial`: the initial 0, at the front (at the end if
/// `reverse`).
Tensor cumulative_sum(In x, std::int64_t dimension, bool reverse, bool include_initial);

}  // namespace meshard
