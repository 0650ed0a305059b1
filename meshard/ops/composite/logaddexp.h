#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// log(exp(a) + exp(b)), computed without overflow. Broadcasts and promotes; integers are computed
/// in f32.
Tensor logaddexp(In a, In b);

}  // namespace meshard
