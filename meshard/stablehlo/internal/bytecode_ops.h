// The properties of ops in bytecode, which stores them without their names.
#pragma once
#include <string_view>
#include <vector>

#include "meshard/stablehlo/internal/bytecode.h"

namespace meshard::stablehlo {

/// A property of an op, and whether bytecode may leave it out.
struct OpProperty {
  std::string_view name;
  bool optional = false;
};

/// The properties of an op of StableHLO, CHLO, Shardy, `func` and the versioned form of StableHLO,
/// in the order in which bytecode has them.
/// @error throws data loss, with the op's name: an op that is not known, with properties or of a
/// version
std::vector<OpProperty> properties_of(const BytecodeOp& op);

}  // namespace meshard::stablehlo
