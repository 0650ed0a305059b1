// Selects elements by integer index. An index out of range is clamped; a negative index becomes 0
// and does not count from the end.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// Takes the slices x[..., indices[i], ...] along a dimension. The dimension is replaced by those
/// of `indices` (integers of any rank). An embedding lookup is `take(table, tokens, 0)`.
/// @error the dimension is empty.
Tensor take(In x, In indices, std::int64_t dimension = 0);

/// The elements x[i, ..., indices[i, ..., k], ..., n]. `indices` has the rank of x, and its other
/// dimensions broadcast with those of x. Applies the result of argsort or argmax.
Tensor take_along_axis(In x, In indices, std::int64_t dimension = -1);

}  // namespace meshard
