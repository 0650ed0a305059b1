// Answers that need devices are computed in another process: a process chooses its devices only
// once, and a crash or hang there fails only one case.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// Child processes of this program, one for each number of devices. Each starts at its first
/// request, and again if it died. Not thread-safe.
class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// Ends the processes.
  ~Workers();

  /// The answer of the suite for `file`, a golden file's path, on `devices` virtual devices, within
  /// `seconds`; `{"skipped": why}` if there is no plugin.
  /// @error std::runtime_error if the process dies, does not answer in time, or the suite fails.
  nlohmann::json ask(int devices, const std::string& file, const nlohmann::json& input,
                     int seconds);

 private:
  struct Process {
    int id = 0;
    int socket = -1;
  };
  static Process start(int devices);
  std::map<int, Process> processes_;  // by number of devices
};

/// The suite's answer; null if the input lacks a field that the suite reads, or has a value of
/// another type there. Nothing is guessed.
nlohmann::json answer_or_unknown(const Suite& suite, const nlohmann::json& input,
                                 const GoldenFile& file);

/// The child process, `meshard-conformance --worker N`: answers each line of standard input with a
/// line of standard output, until the input ends. Returns the exit code.
int serve_answers(int devices);

}  // namespace meshard::conformance
