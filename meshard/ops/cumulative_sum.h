#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

struct CumulativeAttributes {
  std::int64_t dimension = 0;
  MESHARD_FIELDS(dimension)
};

/// The sums of the elements up to each, along a dimension. The dtype stays, integers wrap around;
/// bools are counted in i32.
Tensor cumulative_sum(In x, std::int64_t dimension = -1);

}  // namespace meshard
