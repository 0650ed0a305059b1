// How much plugins write to standard error.
#pragma once
#include <functional>
#include <string>

namespace meshard::pjrt {

/// Changes an environment variable unless it is set; a test gives its own.
using SetIfUnset = std::function<void(const char* name, const std::string& value)>;

/// Sets the variables by which plugins choose what they log, from MESHARD_PLUGIN_LOG: 0 everything,
/// 1 warnings and errors, 2 errors, 3 only what ends the process (the default, also for other text:
/// errors come back from the calls, and the CPU plugin of API 0.106 logs one for each program with
/// code for vectors of 512 bits). What the user has set himself stays: TF_CPP_MIN_LOG_LEVEL, and
/// TPU_MIN_LOG_LEVEL and TPU_STDERR_LOG_LEVEL of libtpu. Plugins read them when they are loaded.
/// @param asked the value of MESHARD_PLUGIN_LOG; null if it is not set
void choose_plugin_log(const char* asked, const SetIfUnset& set);

}  // namespace meshard::pjrt
