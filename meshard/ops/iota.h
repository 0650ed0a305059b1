#pragma once
#include <cstdint>

#include "meshard/graph/tensor.h"

namespace meshard {

struct IotaAttributes {
  DType dtype = DType::i32;
  Shape shape;
  std::int64_t dimension = 0;
  MESHARD_FIELDS(dtype, shape, dimension)
};

/// The index of each element along `dimension` (negative counts from the last), in any dtype except
/// bool.
Tensor iota(DType dtype, Shape shape, std::int64_t dimension,
            SourceLocation where = SourceLocation::current());

}  // namespace meshard
