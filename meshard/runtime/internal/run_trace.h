// One trace of all processes of a run.
#pragma once
#include <string>

#include "meshard/processes/processes.h"
#include "meshard/runtime/internal/chrome_trace.h"

namespace meshard::internal {

/// Called by all processes with their own trace, whose `begin` is by the clock of this process.
/// Process 0 writes the file.
/// @error those of the store; in all processes, the system's if the file cannot be written
Result<void> write_trace_of_run(const Processes& run, ProcessTrace trace, const std::string& path);

/// Writes the text of a trace.
/// @error the system's error, with the path
Result<void> write_trace_file(const std::string& path, const std::string& text);

}  // namespace meshard::internal
