// Answers that need devices are given in another process: the devices of a process are chosen once,
// and a crash or a hang there fails one case.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// Processes of this program, one for each number of devices, started when first asked and again
/// after one has died. Not to be used by several threads.
class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// Ends them.
  ~Workers();

  /// The answer of the suite for `file`, a golden file's path, on `devices` virtual devices, within
  /// `seconds`;
  /// `{"skipped": why}` if there is no plugin.
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

/// The suite's answer; null if the input lacks a field that the suite reads, or has another kind of
/// value there: nothing is guessed.
nlohmann::json answer_or_unknown(const Suite& suite, const nlohmann::json& input,
                                 const GoldenFile& file);

/// The other end, `meshard-conformance --worker N`: answers a line of standard input with a line of
/// standard output until there are no more. Returns the exit code.
int serve_answers(int devices);

}  // namespace meshard::conformance
