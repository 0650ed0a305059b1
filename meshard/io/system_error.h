// What the operating system says, as an Error.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/error.h"

namespace meshard::io {

/// Of errno: `[io] cannot open weights.npy: No such file or directory`.
Error system_error(std::string_view doing, const std::string& path);

}  // namespace meshard::io
