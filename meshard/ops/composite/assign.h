#pragma once
#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// Replaces the contents of a handle: `x` becomes a tensor of the array's elements. It keeps its
/// annotation, so that the new shards of a marked value are transferred directly to their devices.
/// Copies of the handle keep the old value. The rvalue overload takes the array; the other shares
/// its immutable block.
/// @error invalid argument if the array has another shape or dtype than `x`.
void assign(Tensor& x, HostArray&& array, SourceLocation where = SourceLocation::current());
void assign(Tensor& x, const HostArray& array, SourceLocation where = SourceLocation::current());

}  // namespace meshard
