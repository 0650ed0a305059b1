// Adding, removing and reordering dimensions.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// Removes the named dimensions, which must have size 1; by default every dimension of size 1.
/// @error a named dimension has another size.
Tensor squeeze(In x, DimensionList dimensions);
Tensor squeeze(In x);

/// Inserts a new dimension of size 1 at position `dimension` of the result.
Tensor expand_dims(In x, std::int64_t dimension = 0);

/// All elements in row-major order, as one dimension.
Tensor flatten(In x);

/// Exchanges two dimensions.
Tensor swapaxes(In x, std::int64_t a, std::int64_t b);

/// Moves dimension source[i] to position destination[i]; the others keep their order.
/// @error lists of different lengths, a dimension named twice.
Tensor moveaxis(In x, Dimensions source, Dimensions destination);
Tensor moveaxis(In x, std::int64_t source, std::int64_t destination);

}  // namespace meshard
