// Mean and variance along dimensions. Integers and bools are computed in f32; 16-bit and 8-bit
// floats too, and rounded once at the end.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// The mean of the elements; NaN of no elements.
Tensor mean(In x, DimensionList dimensions = {}, bool keepdims = false);

/// The mean square distance to the mean (of complex numbers the square of its absolute value, a
/// real number), divided by n - correction instead of n: 0 for the whole population, 1 for a
/// sample.
Tensor var(In x, DimensionList dimensions = {}, double correction = 0, bool keepdims = false);

/// The square root of var (`std` in the array API standard).
Tensor std_dev(In x, DimensionList dimensions = {}, double correction = 0, bool keepdims = false);

}  // namespace meshard
