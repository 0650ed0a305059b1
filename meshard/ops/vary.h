#pragma once
#include "meshard/graph/annotation.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/collective_axes.h"

namespace meshard {

struct VaryAttributes {
  AxisList axes;
  MESHARD_FIELDS(axes)
};

/// Widens a local value: the result also varies over `axes`. From here on, each device has its own
/// value. No data moves. Ops on values that vary over different axes widen them automatically. Call
/// vary where a value that all devices share must enter a collective once per device. The
/// cotangents are summed over the axes (all_reduce).
/// @error the axes are not manual axes of x, or are sub-axes.
Tensor vary(In x, const CollectiveAxes& axes);

/// `x` as a local value that varies over all axes that `place` varies over.
/// @pre it may enter (may_enter), or belongs to an enclosing region
Tensor widened(const Tensor& x, const ManualAxes& place);

}  // namespace meshard
