#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/stablehlo/types.h"

namespace meshard {

/// Gathers slices of `operand` at `start_indices`, as StableHLO's gather does. An index out of
/// range is clamped so that its slice fits inside. For the common cases: take, take_along_axis.
/// @pre set `indices_are_sorted` only if they are.
Tensor gather(In operand, In start_indices, GatherDimensions dimensions, Dimensions slice_sizes,
              bool indices_are_sorted = false);

}  // namespace meshard
