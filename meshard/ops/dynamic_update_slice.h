#pragma once
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// `x` with the box that begins at `starts` replaced by `update`. Starts are integers of rank 0,
/// one per dimension, or numbers. A start is clamped so that the box fits inside. The dtype is that
/// of x.
/// @error ranks differ; a start that is not an integer of rank 0; an update larger than x.
Tensor dynamic_update_slice(In x, In update, const std::vector<In>& starts);

}  // namespace meshard
