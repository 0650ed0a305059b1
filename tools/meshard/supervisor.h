// One attempt of a run of several processes: starts them, copies their output, and ends them.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::tool {

/// What to start.
struct Attempt {
  std::vector<std::string> command;
  int count = 1;
  int number = 0;  ///< 0: the first one of the run
  /// A Unix socket that does not exist yet, where process 0 listens.
  std::string address = {};
  /// How long processes may take to end after SIGTERM, or after the signal that is passed on.
  std::chrono::milliseconds grace{5000};
};

/// How an attempt ended.
struct AttemptEnd {
  /// The exit status of the run: 0, that of the first process that failed, or 128 + its signal.
  int status = 0;
  /// The processes that were lost, not those that ended because of them. None: all ended normally.
  std::vector<int> lost;
  /// `process 1 of 4 (pid 4711) was killed by signal 9 (Killed), 2.4 s after its start`.
  std::string what;
  /// The signal that ended the run from outside; 0: none.
  int signal = 0;
};

/// Starts the processes in process groups of their own, with MESHARD_PROCESS_ADDRESS, _RANK and
/// _COUNT and MESHARD_LAUNCH_ATTEMPT, nothing on standard input, and standard output and error
/// copied to those of this process, each line after the rank: `[1] loss 0.5`. When one is lost, the
/// others are ended: they have a second to end by themselves and report why, then SIGTERM, and
/// SIGKILL after the grace. SIGTERM, SIGINT and SIGHUP are passed on, and SIGKILL follows after the
/// grace, or when the signal comes again; SIGTSTP suspends all processes. When this process is
/// killed, the kernel kills them.
/// @pre this process has no other children and no other threads
/// @error not found or permission denied if the program cannot be started; unavailable if there are
/// no pipes or processes left
Result<AttemptEnd> supervise(const Attempt& attempt);

}  // namespace meshard::tool
