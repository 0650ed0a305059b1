// Who decides how tensors lie along an axis of a mesh.
#pragma once
#include <cstdint>

namespace meshard {

enum class AxisKind : std::uint8_t {
  kAuto,      ///< the compiler
  kExplicit,  ///< the program: the sharding is part of a value's type, inferred at the call
};

}  // namespace meshard
