#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/collective_axes.h"

namespace meshard {

struct ReduceScatterAttributes {
  AxisList axes;
  std::int64_t size = 1;
  std::int64_t dimension = 0;
  MESHARD_FIELDS(axes, size, dimension)
};

/// Sums the local values of all devices along `axes` and leaves each device one part. The sum is
/// split along `dimension` (negative counts from the last) into one part per device. An operand
/// that does not vary over the axes is widened first.
/// @error x is not a local value; the dimension is out of range; the number of devices does not
/// divide its size; bools.
Tensor reduce_scatter(In x, const CollectiveAxes& axes, std::int64_t dimension = 0);

}  // namespace meshard
