// Writes text to a file.
#pragma once
#include <fstream>
#include <string>

#include "meshard/base/error.h"

namespace meshard::tool {

/// @error the file cannot be written.
inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw Error(ErrorCode::kUnavailable, "cannot write " + path);
}

}  // namespace meshard::tool
