#include "meshard/pjrt/internal/plugin_log.h"

#include <string_view>

namespace meshard::pjrt {

void choose_plugin_log(const char* asked, LogLevel wanted, const SetIfUnset& set) {
  std::string_view text = asked == nullptr ? "" : asked;
  std::string level = wanted == LogLevel::kInfo ? "0" : wanted == LogLevel::kWarning ? "1" : "3";
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '3') level = text;
  for (const char* name : {"TF_CPP_MIN_LOG_LEVEL", "TPU_MIN_LOG_LEVEL", "TPU_STDERR_LOG_LEVEL"})
    set(name, level);
}

}  // namespace meshard::pjrt
