#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/collective_axes.h"

namespace meshard {

/// The place of each device in its group along `axes`, an i32 of rank 0 that varies over them: 0 to
/// n-1, the first axis the most significant. Inside a function given to manual().
/// @error not inside such a function; an axis that is not manual there.
Tensor axis_index(const CollectiveAxes& axes, SourceLocation where = SourceLocation::current());
/// The same inside the manual axes that the local value `like` is inside of.
/// @error `like` is a full value; an axis that is not manual there.
Tensor axis_index(In like, const CollectiveAxes& axes);

}  // namespace meshard
