#pragma once
#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// A constant embedded in the program: another value makes another program. For data use from_host.
Tensor constant(HostArray value, SourceLocation where = SourceLocation::current());

}  // namespace meshard
