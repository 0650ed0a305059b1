#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

struct SliceAttributes {
  Dimensions start, stop, stride;
  MESHARD_FIELDS(start, stop, stride)
};

/// In each dimension d the elements start[d], start[d] + stride[d], ... below stop[d]. Strides left
/// out are 1. Ranges as Python writes them: index().
/// @error unless 0 <= start <= stop <= size and stride >= 1 in every dimension.
Tensor slice(In x, Dimensions start, Dimensions stop, Dimensions stride = {});

}  // namespace meshard
