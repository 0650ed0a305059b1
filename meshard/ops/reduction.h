// Reductions: ops that combine the elements along dimensions.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// Attributes of every reduction.
struct ReductionAttributes {
  Dimensions dimensions;  ///< ascending, not negative
  MESHARD_FIELDS(dimensions)
};

// Each takes the dimensions to reduce: one, a list, or all of them if left out (sum(x, -1)). They
// are gone from the result, or have size 1 if `keepdims`.

/// The sum of the elements. The dtype stays, but bools and narrower integers are added up in i32 or
/// u32; integers wrap around. 16-bit and 8-bit floats are added up in f32 and rounded at the end.
Tensor sum(In x, DimensionList dimensions = {}, bool keepdims = false);

/// The product of the elements; dtypes as in sum. Its derivative is right where elements are zero.
Tensor prod(In x, DimensionList dimensions = {}, bool keepdims = false);

/// The largest (smallest) element; NaN if there is one. Equal ones share the cotangent equally. In
/// programs for several devices floats are compared as integers in the same order, because
/// all-reduces of plugins may drop NaN.
/// @error there is no element, or they are bools.
Tensor max(In x, DimensionList dimensions = {}, bool keepdims = false);
Tensor min(In x, DimensionList dimensions = {}, bool keepdims = false);

/// True if any (all) of the elements are true: not zero, for numbers. Of no elements: false (true).
Tensor any(In x, DimensionList dimensions = {}, bool keepdims = false);
Tensor all(In x, DimensionList dimensions = {}, bool keepdims = false);

}  // namespace meshard
