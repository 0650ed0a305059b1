// The small programs of lowered_modules.json, written with meshard.
#pragma once
#include <optional>
#include <string>

#include "meshard/lowering/lower.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// The module of a case, selected by its `id` and the shardings in `what`; none if it is unknown.
/// @error meshard::Error if meshard rejects it.
std::optional<std::string> lowered_program(const Json& test);

}  // namespace meshard::conformance
