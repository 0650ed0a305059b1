#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The same value, which the compiler may neither fuse, move nor recompute across this point.
Tensor optimization_barrier(In x);

}  // namespace meshard
