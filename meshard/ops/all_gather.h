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

/// Concatenates the local values of all devices along `axes`, on each of these devices. They are
/// concatenated along `dimension`; negative counts from the last. The result is varying over the
/// axes, because each device may use it differently; its cotangents are summed and scattered
/// (reduce_scatter). An operand that does not vary over the axes is widened first.
/// @error x is not a local value; the dimension is out of range.
Tensor all_gather(In x, const CollectiveAxes& axes, std::int64_t dimension = 0);

/// all_gather with a result that is unvarying over the axes.
/// It can leave the manual region as a replicated value. Each device takes its own part of the
/// cotangent.
/// @error as all_gather; a sub-axis.
Tensor all_gather_invariant(In x, const CollectiveAxes& axes, std::int64_t dimension = 0);

}  // namespace meshard
