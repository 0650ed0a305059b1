// Reads a module's boundary from its text.
#pragma once
#include <string_view>

#include "meshard/stablehlo/module_reader.h"

namespace meshard::stablehlo {

/// Reads text in pretty or generic form, with or without locations.
/// @error throws data loss
ModuleFacts read_text_module(std::string_view text);

}  // namespace meshard::stablehlo
