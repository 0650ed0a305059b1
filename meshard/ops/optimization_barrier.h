#pragma once
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The same value, which the compiler may neither fuse, move nor recompute across this point.
Tensor optimization_barrier(In x);

/// The same values, none of which the compiler uses before all are computed.
std::vector<Tensor> optimization_barrier(const std::vector<Tensor>& tensors,
                                         SourceLocation where = SourceLocation::current());

}  // namespace meshard
