#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The real parts; real numbers are unchanged.
Tensor real(In x);

}  // namespace meshard
