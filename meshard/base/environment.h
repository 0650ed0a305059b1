// Environment variables: their numbers, and those that nothing would read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

/// The whole number in the environment variable `name`; `otherwise` if it is not set or
/// empty.
/// @error invalid argument if the text is not a whole number from `least` to `most`; the message
/// has the variable, its text and both bounds.
Result<std::int64_t> environment_integer(const char* name, std::int64_t otherwise,
                                         std::int64_t least, std::int64_t most);

/// The same for a number with a fraction.
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
