// Work that may crash or hang, in a process of its own.
#pragma once
#include <functional>
#include <string>

namespace meshard::tool {

/// What became of the work: its text, and its exit code or why there is none.
struct ChildOutcome {
  std::string output;
  /// What it wrote to standard error, at most the last 4,000 bytes.
  std::string log;
  int exit_code = -1;
  /// `crashed (signal 6)`, `did not answer within 60 s`; empty if it ended by itself.
  std::string failure;
};

/// Runs `work` in a child of this process; what it returns is its exit code, what it appends to its
/// argument comes back as the output. Kills it after `seconds`. Its standard error is kept apart.
/// @pre this process has one thread
ChildOutcome run_in_child(const std::function<int(std::string&)>& work, double seconds);

}  // namespace meshard::tool
