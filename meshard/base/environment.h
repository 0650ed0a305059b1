// Environment variables: their numbers, and those that nothing would read.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

// How much meshard and the plugins write to the standard error stream.

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
/// The level with this text. @error invalid argument for any other text
Result<LogLevel> parse_log_level(std::string_view text);

/// The level of this process: the one set last, otherwise MESHARD_LOG, otherwise kError. A value of
/// MESHARD_LOG that is not a level counts as not set; starting the runtime reports it.
LogLevel log_level();
/// Plugins read their part when they are loaded, so call it before the first tensor is computed.
void set_log_level(LogLevel level);

/// Checks MESHARD_LOG. @error invalid argument, naming the variable, if it is not a level
Result<void> check_log_variable();

/// The whole number in the environment variable `name`; `otherwise` if it is not set or
/// empty.
/// @error invalid argument if the text is not a whole number from `least` to `most`; the message
/// has the variable, its text and both bounds.
Result<std::int64_t> environment_integer(const char* name, std::int64_t otherwise,
                                         std::int64_t least, std::int64_t most);

/// Like environment_integer(), for a number with a fraction.
Result<double> environment_number(const char* name, double otherwise, double least, double most);

/// The variables of a process that begin with MESHARD_ and that no part of meshard reads: a line
/// for each, with the nearest name that one does.
/// @param environment as `environ`: `NAME=VALUE`, ended by null
std::vector<std::string> unknown_variables(const char* const* environment);

/// Writes unknown_variables() of this process to the standard error stream, once, unless
/// log_level() is kOff.
void report_unknown_variables();

/// What is checked when the runtime starts, because it would have no effect otherwise: the values
/// of MESHARD_LOG, MESHARD_PLUGIN_LOG and the variables that are 0 or 1. Calls
/// report_unknown_variables().
/// @error invalid argument, naming the variable
Result<void> check_environment();

}  // namespace meshard
