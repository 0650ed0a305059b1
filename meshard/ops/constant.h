// Values that a program has of its own: constants, and counters.
#pragma once
#include <cstdint>

#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// A constant embedded in the program: another value makes another program. For data use from_host.
Tensor constant(HostArray value, SourceLocation where = SourceLocation::current());

/// The index of each element along `dimension` (negative counts from the last), in any dtype except
/// bool.
Tensor iota(DType dtype, Shape shape, std::int64_t dimension,
            SourceLocation where = SourceLocation::current());

}  // namespace meshard
