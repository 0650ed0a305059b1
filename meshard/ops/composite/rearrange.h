// Adding, removing and reordering dimensions.
#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// Without the named dimensions, which have size 1; without every dimension of size 1 if left out.
/// @error a named dimension has another size.
Tensor squeeze(In x, DimensionList dimensions);
Tensor squeeze(In x);

/// With a new dimension of size 1, which becomes dimension `dimension` of the result.
Tensor expand_dims(In x, std::int64_t dimension = 0);

/// All elements in row-major order, in one dimension.
Tensor flatten(In x);

/// With two dimensions exchanged.
Tensor swapaxes(In x, std::int64_t a, std::int64_t b);

/// With dimension source[i] as dimension destination[i] of the result; the others keep their order.
/// @error lists of different lengths, a dimension named twice.
Tensor moveaxis(In x, Dimensions source, Dimensions destination);
Tensor moveaxis(In x, std::int64_t source, std::int64_t destination);

}  // namespace meshard
