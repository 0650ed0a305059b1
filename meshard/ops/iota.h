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

/// Every element's index along `dimension` (negative counts from the last), of any dtype but bool.
Tensor iota(DType dtype, Shape shape, std::int64_t dimension,
            SourceLocation where = SourceLocation::current());

}  // namespace meshard
