// Runs a program that may crash or hang, in a process group of its own.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

/// Value type: the head and tail of a text of any length.
class BoundedText {
 public:
  /// Sets how many bytes to keep of the head and of the tail.
  explicit BoundedText(std::size_t most_head = 512 << 10, std::size_t most_tail = 64 << 10)
      : most_head_(most_head), most_tail_(most_tail) {}

  void append(std::string_view bytes);
  /// The text; if bytes were dropped, a line in the middle reports how many.
  std::string text() const;

 private:
  std::size_t most_head_, most_tail_;
  std::size_t left_out_ = 0;
  std::string head_, tail_;
};

/// Value type: how a child program ended.
struct ChildEnd {
  /// -1 if a signal ended the program, or if unknown.
  int exit_code = -1;
  /// The signal that ended the program; 0 if none.
  int signal = 0;
  /// True if the program was killed because of the time limit.
  bool timed_out = false;
  /// True if the exit status was lost: `exit_code` and `signal` are then unknown. This happens if
  /// the host program ignores SIGCHLD or waits for every child.
  bool status_lost = false;
  /// Standard error, shortened by BoundedText.
  std::string log;
};

/// Why watching a program ended.
enum class ChildPause {
  kLine,       ///< a line asked for it
  kEnded,      ///< the program ended
  kTimeLimit,  ///< the time was over
};

/// How a running program is watched.
struct ChildWatch {
  std::chrono::milliseconds time_limit{0};
  /// Called with each line of its standard output, without the line break. If it returns true,
  /// watching ends after this line.
  std::function<bool(std::string_view line)> on_line = {};
  /// Called about ten times per second.
  std::function<void()> on_tick = {};
};

/// Move-only owner of a running program, in its own process group. Standard input is a socket that
/// closes when this process ends for any reason, so a program that watches it can end too. The
/// destructor ends all processes of the group.
class ChildProgram {
 public:
  /// @param arguments the program's path and its arguments
  /// @error unavailable if the program cannot be started
  static Result<ChildProgram> start(const std::vector<std::string>& arguments);
  ChildProgram(ChildProgram&&) noexcept;
  ChildProgram& operator=(ChildProgram&&) noexcept;
  ~ChildProgram();

  /// Writes to its standard input. @error unavailable: the program no longer reads it
  Result<void> write(std::string_view bytes);
  /// Passes on what the program prints, until a line asks for a pause, the program ends, or the
  /// time is over. Lines that were printed before a pause are passed on by the next call.
  ChildPause watch(const ChildWatch& options);
  /// What the program wrote to standard error since the last call, shortened by BoundedText.
  std::string take_log();
  /// Ends the program and all processes of its group, unless the program has ended. Called once.
  ChildEnd end();

 private:
  struct State;
  explicit ChildProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A unique environment variable that marks a child program and its descendants:
/// `MESHARD_CHILD=123-456-7`.
std::string child_mark();

/// Kills the processes of a group whose environment contains the mark, found through /proc. Other
/// processes are left alone: after the leader of a group is reaped, another group may reuse its
/// number.
/// @return the number of killed processes
int end_marked_processes(pid_t group, std::string_view mark);

}  // namespace meshard
