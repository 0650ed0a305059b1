#include "meshard/pjrt/internal/plugin_log.h"

namespace meshard::pjrt {

void choose_plugin_log(std::int64_t asked, LogLevel wanted, const SetIfUnset& set) {
  const int otherwise = wanted == LogLevel::kInfo ? 0 : wanted == LogLevel::kWarning ? 1 : 3;
  const std::string level = std::to_string(asked < 0 ? otherwise : asked);
  for (const char* name : {"TF_CPP_MIN_LOG_LEVEL", "TPU_MIN_LOG_LEVEL", "TPU_STDERR_LOG_LEVEL"})
    set(name, level);
}

}  // namespace meshard::pjrt
