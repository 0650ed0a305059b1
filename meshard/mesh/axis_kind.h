// Who decides how tensors are sharded over a mesh axis: the compiler or the program.
#pragma once
#include <cstdint>
#include <string_view>

#include "meshard/base/print.h"

namespace meshard {

enum class AxisKind : std::uint8_t {
  kAuto,      ///< the compiler
  kExplicit,  ///< the program: the sharding is part of a value's type, inferred at the call
};

/// `auto`, `explicit`.
constexpr std::string_view to_string(AxisKind kind) {
  return kind == AxisKind::kAuto ? "auto" : "explicit";
}

}  // namespace meshard
