// Converts errors of the operating system to Error.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/error.h"

namespace meshard::io {

/// An Error for the current errno: `[io] cannot open weights.npy: No such file or directory`.
Error system_error(std::string_view doing, const std::string& path);

}  // namespace meshard::io
