#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct SliceAttributes {
  Dimensions start, stop, stride;
  MESHARD_FIELDS(start, stop, stride)
};

/// The elements start[d], start[d] + stride[d], ... below stop[d] of each dimension d. Strides
/// default to 1. For Python-style ranges use index().
/// @error unless 0 <= start <= stop <= size and stride >= 1 in every dimension.
Tensor slice(In x, Dimensions start, Dimensions stop, Dimensions stride = {});

}  // namespace meshard
