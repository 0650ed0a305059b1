// The small programs of lowered_modules.json, in meshard.
#pragma once
#include <optional>
#include <string>

#include "meshard/lowering/lower.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// The module of a case, by its `id` and the shardings that `what` names; none if nobody knows it.
/// @error meshard::Error if it is refused.
std::optional<std::string> lowered_program(const Json& test);

}  // namespace meshard::conformance
