// Which processes of the run hold which part of a value.
#pragma once
#include <vector>

#include "meshard/array/slice.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// One distinct part of a value, and the processes of the run whose devices hold it, ascending.
struct HeldPart {
  Box box;
  std::vector<int> processes;
  friend bool operator==(const HeldPart&, const HeldPart&) = default;
};

/// The distinct parts of a value, in row-major order; together they cover it, and none is empty
/// unless the value is. Equal in all processes. Computes the value if it is only recorded;
/// otherwise nothing communicates. A value that each process has for itself (on the host, without a
/// sharding, or on devices that other processes do not know) is one that process 0 holds.
/// @error the errors of computing it
std::vector<HeldPart> held_parts(const Tensor& tensor,
                                 SourceLocation where = SourceLocation::current());

}  // namespace meshard
