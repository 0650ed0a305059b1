// Who decides how tensors are sharded over a mesh axis: the compiler or the program.
#pragma once
#include <cstdint>

namespace meshard {

enum class AxisKind : std::uint8_t {
  kAuto,      ///< the compiler
  kExplicit,  ///< the program: the sharding is part of a value's type, inferred at the call
};

}  // namespace meshard
