// Runs a program that may crash or hang.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

/// A value: the beginning and the end of a text of any length.
class BoundedText {
 public:
  /// What is kept of the beginning and of the end, in bytes.
  explicit BoundedText(std::size_t most_head = 512 << 10, std::size_t most_tail = 64 << 10)
      : most_head_(most_head), most_tail_(most_tail) {}

  void append(std::string_view bytes);
  /// With a line between the parts that says how much is missing.
  std::string text() const;

 private:
  std::size_t most_head_, most_tail_;
  std::size_t left_out_ = 0;
  std::string head_, tail_;
};

/// How a program is run and watched.
struct ChildProgramOptions {
  /// The program's path and its arguments.
  std::vector<std::string> arguments;
  std::chrono::milliseconds time_limit{0};
  /// Each line of its standard output, without the end of line.
  std::function<void(std::string_view line)> on_line = {};
  /// About ten times a second.
  std::function<void()> on_tick = {};
};

/// A value: how it ended.
struct ChildEnd {
  /// -1 if a signal ended it, or if nobody knows.
  int exit_code = -1;
  /// 0 if none.
  int signal = 0;
  /// It was ended because of the time limit.
  bool timed_out = false;
  /// The system did not keep its exit status for us, because the host program ignores SIGCHLD or
  /// waits for every child: `exit_code` and `signal` are unknown.
  bool status_lost = false;
  /// Its standard error.
  std::string log;
};

/// Runs a program in a process group of its own until it ends. When the call returns or throws, no
/// process of the group is left. The program's standard input is a pipe that nothing is written to
/// and that ends when this process does, in whatever way: a program that watches it goes with us.
/// @error unavailable if it cannot be started
Result<ChildEnd> run_child_program(const ChildProgramOptions& options);

}  // namespace meshard
