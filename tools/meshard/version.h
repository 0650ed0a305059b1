// What `meshard --version` prints.
#pragma once
#include <string>

namespace meshard::tool {

/// `meshard 0.1.0 (PJRT API 0.114, plugins from 0.54)`
std::string version_text();

}  // namespace meshard::tool
