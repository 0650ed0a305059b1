// Custom calls of the older interfaces, as calls of the typed one.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// The text with the custom calls of `target` as typed calls (api_version 4) without a
/// configuration. A compiler of XLA accepts typed calls that it has a placeholder for; of those of
/// the older interfaces it needs the function itself. The text stays as it is if it has no such
/// call.
/// @error data loss: the text cannot be parsed
Result<std::string> with_typed_calls(std::string_view text, std::string_view target);

}  // namespace meshard::stablehlo
