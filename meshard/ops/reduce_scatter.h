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

/// The sum of the local values of all devices along `axes`, cut along `dimension` (negative counts
/// from the last) into as many parts as there are devices; each keeps its own. A value that does
/// not vary over the axes is widened first.
/// @error x is not a local value; no such dimension; the devices do not divide it; bools.
Tensor reduce_scatter(In x, const CollectiveAxes& axes, std::int64_t dimension = 0);

}  // namespace meshard
