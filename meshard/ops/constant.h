#pragma once
#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"

namespace meshard {

struct ConstantAttributes {
  HostArray value;
  MESHARD_FIELDS(value)
};

/// A value that is part of the program: another value is another program. For data use from_host.
Tensor constant(HostArray value, SourceLocation where = SourceLocation::current());

}  // namespace meshard
