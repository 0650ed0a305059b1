// Numbers in environment variables.
#pragma once
#include <cstdint>

#include "meshard/base/result.h"

namespace meshard {

/// The whole number in the environment variable `name`; `otherwise` if it is not set or
/// empty.
/// @error invalid argument if the text is not a whole number from `least` to `most`; the message
/// has the variable, its text and both bounds.
Result<std::int64_t> environment_integer(const char* name, std::int64_t otherwise,
                                         std::int64_t least, std::int64_t most);

/// The same for a number with a fraction.
Result<double> environment_number(const char* name, double otherwise, double least, double most);

}  // namespace meshard
