// The text of modules that are stored as bytecode.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// A module as text: text as it is, bytecode and portable artifacts (StableHLO 1.0 to 1.20) as
/// StableHLO that compilers and Module::parse() read. Ops are in the generic form,
/// `%2 = "stablehlo.add"(%0, %1) : (...) -> ...`, with their locations; constants have exactly the
/// same bits.
/// @error data loss: the bytes are damaged, or have an op, a type or an attribute that is not
/// known, with its name
Result<std::string> module_as_text(std::string_view module);

/// The same for a file: a module in any form, or what jax.export serialized for one platform.
/// @error as module_as_text(); unimplemented: an export for several platforms
Result<std::string> program_as_text(std::string_view file);

}  // namespace meshard::stablehlo
