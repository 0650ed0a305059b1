// Conversions to another dtype, of the values and of the bits.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Converts the elements to another dtype. Floats are truncated to integers; any nonzero value
/// becomes true.
Tensor astype(In x, DType dtype);

/// Reinterprets the bits of the elements as another dtype. A narrower dtype splits each element
/// along a new last dimension, lowest bits first. A wider dtype joins the elements along the last
/// dimension, which is removed: f32[3] as u8 is u8[3, 4], and vice versa. The derivative is zero.
/// @error bools; for a wider dtype, a last dimension that is not as large as the ratio of the
/// widths.
Tensor bitcast_convert(In x, DType dtype);

}  // namespace meshard
