#include "tools/meshard/version.h"

#include "meshard/base/cat.h"
#include "meshard/pjrt/plugin.h"

namespace meshard::tool {

std::string version_text() {
  return cat("meshard ", MESHARD_VERSION, " (PJRT API ", pjrt::built_api_version(),
             ", plugins from ", pjrt::oldest_api_version(), ")");
}

}  // namespace meshard::tool
