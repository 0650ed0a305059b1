// Groups of rows combined.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// Row s of the result is the sum of the rows i of x (along dimension 0) with segments[i] == s, for
/// s below `count`; of no rows: 0. A number outside 0 to count - 1 leaves its row out. `segments`
/// are integers of shape [size of dimension 0], in any order.
/// @error segments of another shape; a negative count.
Tensor segment_sum(In x, In segments, std::int64_t count);

/// The mean of these rows; of no rows: 0. Integers are computed in f32.
Tensor segment_mean(In x, In segments, std::int64_t count);

/// Their product; of no rows: 1. Bools are counted in i32.
Tensor segment_prod(In x, In segments, std::int64_t count);

/// Their largest (smallest) elements; of no rows: the infinity that is below (above) all, of
/// integers the end of their range. Equal ones share the cotangent equally.
/// @error bools, complex numbers; and as segment_sum.
Tensor segment_max(In x, In segments, std::int64_t count);
Tensor segment_min(In x, In segments, std::int64_t count);

}  // namespace meshard
