// Selecting elements by integer index, and one-hot vectors.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

// Selects elements by integer index. A negative index counts from the end, as in NumPy. An index
// out of range is an error if the indices are known when the call is recorded: numbers, constants
// and values in host memory. Otherwise, as in a jitted function, it is clamped to the dimension.

/// Takes the slices x[..., indices[i], ...] along a dimension. The dimension is replaced by those
/// of `indices` (integers of any rank). An embedding lookup is `take(table, tokens, 0)`.
/// @error the dimension is empty; out of range: a known index is outside of it.
Tensor take(In x, In indices, std::int64_t dimension = 0);

/// The elements x[i, ..., indices[i, ..., k], ..., n]. `indices` has the rank of x, and its other
/// dimensions broadcast with those of x. Applies the result of argsort or argmax.
/// @error as take()
Tensor take_along_axis(In x, In indices, std::int64_t dimension = -1);

/// 1 at each index, 0 elsewhere, along a new last dimension of size `classes`. An index out of
/// range gives only zeros.
/// @error invalid argument if the indices are not integers or classes is negative.
Tensor one_hot(In indices, std::int64_t classes, DType dtype = kDefaultFloat);

}  // namespace meshard
