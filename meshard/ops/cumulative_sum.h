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

/// The sums of the elements up to each, along a dimension; from each on if `reverse`. Dtypes as in
/// sum().
Tensor cumulative_sum(In x, std::int64_t dimension = -1, bool reverse = false);
/// The same with one element more if `include_initial`: the 0 that the sums begin with, in front
/// (at the end if `reverse`).
Tensor cumulative_sum(In x, std::int64_t dimension, bool reverse, bool include_initial);

}  // namespace meshard
