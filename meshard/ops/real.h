#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The real parts; real numbers as they are.
Tensor real(In x);

}  // namespace meshard
