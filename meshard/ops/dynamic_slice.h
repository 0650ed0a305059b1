#pragma once
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

struct DynamicSliceAttributes {
  Dimensions sizes;
  MESHARD_FIELDS(sizes)
};

/// A slice of the given `sizes` that begins at `starts`, which are computed. Starts are integers of
/// rank 0, one per dimension, or numbers. A start that is computed is clamped so that the slice
/// fits inside; negative ones do not count from the end.
///
///     dynamic_slice(x, {step, 0}, {1, x.dim(1)})   // row number `step`
/// @error the number of starts or sizes differs from the rank of x; a start that is not an integer
/// of rank 0; a size larger than its dimension; out of range: a number as start with which the
/// slice is not inside.
Tensor dynamic_slice(In x, const std::vector<In>& starts, Dimensions sizes);

}  // namespace meshard
