// Reductions: ops that combine the elements along dimensions.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

// Each reduces over a dimension, a list of dimensions, or by default all of them (sum(x, -1)).
// Reduced dimensions are removed from the result, or have size 1 if `keepdims`.

/// The sum of the elements. The dtype is unchanged, except that bools and narrower integers are
/// summed in i32 or u32; integers wrap around. 16-bit and 8-bit floats are summed in f32 and
/// rounded at the end.
Tensor sum(In x, DimensionList dimensions = {}, bool keepdims = false);

/// The product of the elements; dtypes as in sum. The derivative is correct where elements are
/// zero.
Tensor prod(In x, DimensionList dimensions = {}, bool keepdims = false);

/// The largest (smallest) element; NaN if any element is NaN. Equal elements share the cotangent
/// equally. In programs for several devices floats are compared as integers in the same order,
/// because plugins' all-reduces may drop NaN.
/// @error there are no elements, or they are bools.
Tensor max(In x, DimensionList dimensions = {}, bool keepdims = false);
Tensor min(In x, DimensionList dimensions = {}, bool keepdims = false);

/// The largest element if none is NaN; otherwise any element. Programs for several devices compute
/// it faster than max, which must keep NaN in all-reduces. For shifts that cancel out, as in
/// softmax.
/// @error as max.
Tensor max_of_numbers(In x, DimensionList dimensions = {}, bool keepdims = false);

/// True if any (all) of the elements are true, or for numbers nonzero. Without elements: false
/// (true).
Tensor any(In x, DimensionList dimensions = {}, bool keepdims = false);
Tensor all(In x, DimensionList dimensions = {}, bool keepdims = false);

}  // namespace meshard
