// Ops of StableHLO's versioned dialect (VHLO), which portable artifacts consist of, as StableHLO.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/stablehlo/internal/bytecode_values.h"

namespace meshard::stablehlo {

/// The name of an op without its dialect and version: `add` of `vhlo.add_v1`.
std::string_view unversioned_name(std::string_view op);

/// The properties of an op of the versioned dialect as StableHLO has them, `a = 1, b = [0]`. The
/// versioned dialect has dimension numbers as single attributes, integers as tensors, symbols as
/// strings, and no defaults. As VhloLegalizeToStablehlo.cpp does it.
/// @param name without its dialect and version
/// @error throws data loss: an attribute that is not known
std::string versioned_properties(std::string_view name, const BytecodeValues::Dictionary& given,
                                 BytecodeValues& values);

}  // namespace meshard::stablehlo
