#include "meshard/pjrt/plugin_log.h"

#include <string_view>

namespace meshard::pjrt {

void choose_plugin_log(const char* asked, const SetIfUnset& set) {
  std::string_view text = asked == nullptr ? "" : asked;
  std::string level =
      text.size() == 1 && text[0] >= '0' && text[0] <= '3' ? std::string(text) : "3";
  for (const char* name : {"TF_CPP_MIN_LOG_LEVEL", "TPU_MIN_LOG_LEVEL", "TPU_STDERR_LOG_LEVEL"})
    set(name, level);
}

}  // namespace meshard::pjrt
