// Reads a module's boundary from MLIR bytecode.
#pragma once
#include <string_view>

#include "meshard/stablehlo/module_reader.h"

namespace meshard::stablehlo {

/// @error throws data loss
ModuleFacts read_bytecode_module(std::string_view bytes);

}  // namespace meshard::stablehlo
