#pragma once
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The same value; the compiler must not fuse, move or recompute across this point.
Tensor optimization_barrier(In x);

/// The same values; the compiler uses none of them before all are computed.
std::vector<Tensor> optimization_barrier(const std::vector<Tensor>& tensors,
                                         SourceLocation where = SourceLocation::current());

}  // namespace meshard
