#pragma once
#include "meshard/graph/annotation.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/collective_axes.h"

namespace meshard {

struct VaryAttributes {
  AxisList axes;
  MESHARD_FIELDS(axes)
};

/// The same local value, counted as one that varies over `axes` too: from here on each device has
/// its own. It moves nothing. Ops on values that vary over different axes do this by themselves; it
/// is written where a value that all devices share is to enter a collective once for each of them.
/// The cotangents are summed over the axes (all_reduce).
/// @error the axes are not manual where x is, or are parts of axes.
Tensor vary(In x, const CollectiveAxes& axes);

/// `x` as a local value that varies over all axes that `place` varies over.
/// @pre it may enter (may_enter), or is of a region around
Tensor widened(const Tensor& x, const ManualAxes& place);

}  // namespace meshard
