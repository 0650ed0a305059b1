// Elements by integer index. An index outside is moved inside (clipped), also a negative one: it
// becomes 0 and does not count from the end.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The slices x[..., indices[i], ...] along a dimension, which is replaced by the dimensions of
/// `indices` (integers of any rank). An embedding is `take(table, tokens, 0)`.
/// @error the dimension is empty.
Tensor take(In x, In indices, std::int64_t dimension = 0);

/// The elements x[i, ..., indices[i, ..., k], ..., n]: `indices` has the rank of x, and its other
/// dimensions broadcast with those of x. Undoes argsort, picks by argmax.
Tensor take_along_axis(In x, In indices, std::int64_t dimension = -1);

}  // namespace meshard
