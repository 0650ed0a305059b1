#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Elements of `a` where `condition` (bools) is true, of `b` elsewhere. All three broadcast; a and
/// b are promoted. An element that is not selected receives no cotangent.
Tensor where(In condition, In a, In b);

}  // namespace meshard
