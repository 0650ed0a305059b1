#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/collectives.h"

namespace meshard {

/// The local rank of each device along `axes`, an i32 of rank 0 that varies over them. It is 0 to
/// n-1, the first axis being the most significant. For use inside manual().
/// @error not inside manual(); an axis that is not manual there.
Tensor axis_index(const CollectiveAxes& axes, SourceLocation where = SourceLocation::current());
/// The same inside the manual axes of the local value `like`.
/// @error `like` is a full value; an axis that is not manual there.
Tensor axis_index(In like, const CollectiveAxes& axes);

}  // namespace meshard
