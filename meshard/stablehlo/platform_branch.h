// Chooses the code of one platform in bytecode that was exported for several.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// A value: bytecode of which one platform's code runs.
struct PlatformBranch {
  std::string module;
  /// False if something else than the choice of code depends on the platform's number, so that the
  /// code of the other platforms may still be part of the program.
  bool is_complete = true;
};

/// Bytecode of JAX that was exported for several platforms, as on the platform with this number:
/// wherever a function chooses by its argument `_platform_index`, the chosen value is used instead.
/// Nothing uses the choice then, and the compiler removes it with the code of the other platforms.
/// Nothing moves in the bytes.
/// @error data loss: the bytes are damaged
Result<PlatformBranch> choose_platform(std::string_view bytecode, std::int64_t number);

}  // namespace meshard::stablehlo
