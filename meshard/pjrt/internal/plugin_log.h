// Controls how much plugins log to standard error.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "meshard/base/environment.h"

namespace meshard::pjrt {

/// Sets an environment variable unless it is already set; tests supply their own function.
using SetIfUnset = std::function<void(const char* name, const std::string& value)>;

/// Sets the environment variables that control plugin logging, from MESHARD_PLUGIN_LOG: 0
/// everything, 1 warnings and errors, 2 errors, 3 only fatal errors. If it is not set, `level`
/// decides: 0 for kInfo, 1 for kWarning, otherwise 3, because errors are returned
/// by the calls, and the CPU plugin of API 0.106 logs one for each program with code for 512-bit
/// vectors. Variables that the user has set are kept:
/// TF_CPP_MIN_LOG_LEVEL, and libtpu's TPU_MIN_LOG_LEVEL and TPU_STDERR_LOG_LEVEL. Plugins read them
/// when they are loaded.
/// @param asked the number in MESHARD_PLUGIN_LOG; -1 if it is not set
void choose_plugin_log(std::int64_t asked, LogLevel level, const SetIfUnset& set);

}  // namespace meshard::pjrt
