// Writes text to a file.
#pragma once
#include <cstdio>
#include <fstream>
#include <string>

#include "meshard/base/error.h"

namespace meshard::tool {

/// Writes a file; `-` is standard output. @error the file cannot be written. Errors of standard
/// output are reported when the program ends.
inline void write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    (void)std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw Error(ErrorCode::kUnavailable, "cannot write " + path);
}

}  // namespace meshard::tool
