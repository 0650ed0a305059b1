#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct AstypeAttributes {
  DType dtype = DType::f32;
  MESHARD_FIELDS(dtype)
};

/// Converts the elements to another dtype. Floats are truncated to integers; any nonzero value
/// becomes true.
Tensor astype(In x, DType dtype);

}  // namespace meshard
