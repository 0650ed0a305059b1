#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct BitcastConvertAttributes {
  DType dtype = DType::f32;
  MESHARD_FIELDS(dtype)
};

/// The bits of the elements as elements of another dtype. A narrower dtype gives each element's
/// parts along a new last dimension, the lowest bits first; for a wider one the last dimension
/// holds the parts and goes: f32[3] as u8 is u8[3, 4], and back. The derivative is zero.
/// @error bools; a last dimension of another size than the parts of an element.
Tensor bitcast_convert(In x, DType dtype);

}  // namespace meshard
