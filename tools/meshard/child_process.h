// Runs work that may crash or hang in a separate process.
#pragma once
#include <functional>
#include <string>

namespace meshard::tool {

/// The outcome of the work: its output, and its exit code or the reason why there is none.
struct ChildOutcome {
  std::string output;
  /// The last 4,000 bytes that it wrote to standard error.
  std::string log;
  int exit_code = -1;
  /// `crashed (signal 6)`, `did not answer within 60 s`; empty if it exited normally.
  std::string failure;
};

/// Runs `work` in a child process. Its return value is the exit code, and the text that it appends
/// to its argument is the output. Kills the child after `seconds`. Standard error is captured
/// separately.
/// @pre this process has one thread
ChildOutcome run_in_child(const std::function<int(std::string&)>& work, double seconds);

}  // namespace meshard::tool
