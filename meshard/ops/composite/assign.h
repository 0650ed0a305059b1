#pragma once
#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// New contents for the handle: `x` becomes a tensor of these elements, annotated as it was before,
/// so that a marked value's new shards go straight to their devices. Copies of the handle keep the
/// old value. The moving form takes the array; the other shares its immutable block.
/// @error invalid argument if the array has another shape or dtype than `x`.
void assign(Tensor& x, HostArray&& array, SourceLocation where = SourceLocation::current());
void assign(Tensor& x, const HostArray& array, SourceLocation where = SourceLocation::current());

}  // namespace meshard
