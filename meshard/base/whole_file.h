// Reads and writes files as a whole.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard {

/// Reads a whole file.
/// @error not found, or the system's error; invalid argument if it is not a regular file
Result<std::string> read_whole_file(const std::string& path);

/// Writes a file atomically: it appears complete or not at all. Only this user can read it.
/// @error the system's error
Result<void> write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace meshard
