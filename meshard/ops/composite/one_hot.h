#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// 1 at each index, 0 elsewhere, along a new last dimension of size `classes`. An index out of
/// range gives only zeros.
/// @error invalid argument if the indices are not integers or classes is negative.
Tensor one_hot(In indices, std::int64_t classes, DType dtype = kDefaultFloat);

}  // namespace meshard
