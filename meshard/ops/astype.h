#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct AstypeAttributes {
  DType dtype = DType::f32;
  MESHARD_FIELDS(dtype)
};

/// The elements in another dtype: floats become integers by truncation, anything non-zero becomes
/// true.
Tensor astype(In x, DType dtype);

}  // namespace meshard
