// Mean and variance along dimensions. Integers and bools are computed in f32; so are 16-bit and
// 8-bit floats, rounded once at the end.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// The mean of the elements; NaN if there are none.
Tensor mean(In x, DimensionList dimensions = {}, bool keepdims = false);

/// The variance: the mean square distance to the mean. It is divided by n - correction instead of
/// n: 0 for a population, 1 for a sample. For complex numbers it is the mean square of the absolute
/// value of the distance, a real number.
Tensor var(In x, DimensionList dimensions = {}, double correction = 0, bool keepdims = false);

/// The square root of var (`std` in the array API standard).
Tensor std_dev(In x, DimensionList dimensions = {}, double correction = 0, bool keepdims = false);

}  // namespace meshard
