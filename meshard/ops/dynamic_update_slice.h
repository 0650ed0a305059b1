#pragma once
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// `x` with `update` in place of the box that begins at `starts`: integers of rank 0, one for each
/// dimension, or numbers. A start from which the box would reach outside is moved inside. dtypes
/// are those of x.
/// @error ranks differ; a start that is no integer of rank 0; an update larger than x.
Tensor dynamic_update_slice(In x, In update, const std::vector<In>& starts);

}  // namespace meshard
