#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Elements of `a` where `condition` (bools) is true, of `b` elsewhere. All three broadcast; a and
/// b promote. No cotangent reaches an element that was not chosen.
Tensor where(In condition, In a, In b);

}  // namespace meshard
