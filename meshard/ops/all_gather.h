#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/collective_axes.h"

namespace meshard {

struct AllGatherAttributes {
  AxisList axes;
  std::int64_t size = 1;
  std::int64_t dimension = 0;
  bool invariant = false;
  MESHARD_FIELDS(axes, size, dimension, invariant)
};

/// The local values of all devices along `axes`, one behind the other along `dimension` (negative
/// counts from the last), on each of them. The result counts as varying over the axes, so that its
/// cotangents are summed and scattered (reduce_scatter) where each device uses it for itself. A
/// value that does not vary over the axes is widened first.
/// @error x is not a local value; no such dimension.
Tensor all_gather(In x, const CollectiveAxes& axes, std::int64_t dimension = 0);

/// The same, counted as equal on all devices along the axes: it may leave as a replicated value.
/// Each device takes its own part of the cotangent.
/// @error as all_gather; a part of an axis.
Tensor all_gather_invariant(In x, const CollectiveAxes& axes, std::int64_t dimension = 0);

}  // namespace meshard
