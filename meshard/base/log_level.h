// How much meshard and the plugins write to the standard error stream.
#pragma once
#include <cstdint>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard {

/// What is written to the standard error stream. Each level includes the ones before it. Errors of
/// calls are returned or thrown, and never written.
enum class LogLevel : std::uint8_t {
  kOff,      ///< nothing, except fatal errors of plugins
  kError,    ///< the default: also waits that take too long (set_stall_handler), and variables of
             ///< the environment that nothing reads (unknown_variables)
  kWarning,  ///< also advice (set_advice_handler), and errors and warnings of plugins
  kInfo,     ///< also all other lines of plugins
};

/// `off`, `error`, `warning` or `info`.
std::string_view to_string(LogLevel level);
/// @error invalid argument for any other text
Result<LogLevel> parse_log_level(std::string_view text);

/// The level of this process: the one set last, otherwise MESHARD_LOG, otherwise kError. A value of
/// MESHARD_LOG that is not a level counts as not set; starting the runtime reports it.
LogLevel log_level();
/// Plugins read their part when they are loaded, so call it before the first tensor is computed.
void set_log_level(LogLevel level);

/// Checks MESHARD_LOG. @error invalid argument, naming the variable, if it is not a level
Result<void> check_log_variable();

}  // namespace meshard
