#pragma once
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

struct DynamicSliceAttributes {
  Dimensions sizes;
  MESHARD_FIELDS(sizes)
};

/// The box of `sizes` that begins at `starts`, which are computed: integers of rank 0, one for each
/// dimension, or numbers. A start from which the box would reach outside is moved inside.
///
///     dynamic_slice(x, {step, 0}, {1, x.dim(1)})   // row number `step`
/// @error another number of starts or sizes than x has dimensions; a start that is no integer of
/// rank 0; a size larger than its dimension.
Tensor dynamic_slice(In x, const std::vector<In>& starts, Dimensions sizes);

}  // namespace meshard
