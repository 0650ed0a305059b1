#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The index of each element along `dimension` (negative counts from the last), in any dtype except
/// bool.
Tensor iota(DType dtype, Shape shape, std::int64_t dimension,
            SourceLocation where = SourceLocation::current());

}  // namespace meshard
