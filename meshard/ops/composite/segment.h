// Reductions of groups of rows.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The sums of the rows of each segment; 0 without rows. Row s of the result is the sum of the rows
/// i of x, along dimension 0, with segments[i] == s, for s < `count`. Rows whose segment is not in
/// 0..count - 1 are ignored. `segments` are integers of shape [size of dimension 0], in any order.
/// @error segments of another shape; a negative count.
Tensor segment_sum(In x, In segments, std::int64_t count);

/// The mean of the rows of each segment; 0 without rows. Integers are computed in f32.
Tensor segment_mean(In x, In segments, std::int64_t count);

/// The product of the rows of each segment; 1 without rows. Bools are computed in i32.
Tensor segment_prod(In x, In segments, std::int64_t count);

/// The largest (smallest) elements of the rows of each segment. Without rows: -infinity (infinity),
/// or the lowest (highest) integer. Equal elements share the cotangent equally.
/// @error bools, complex numbers; and as segment_sum.
Tensor segment_max(In x, In segments, std::int64_t count);
Tensor segment_min(In x, In segments, std::int64_t count);

}  // namespace meshard
