#pragma once
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

struct ConcatAttributes {
  std::int64_t dimension = 0;
  MESHARD_FIELDS(dimension)
};

/// Concatenates the tensors along `dimension`: `concat({a, b}, 1)`. dtypes are promoted.
/// @error no tensors; sizes that differ in another dimension.
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t dimension = 0,
              SourceLocation where = SourceLocation::current());

}  // namespace meshard
