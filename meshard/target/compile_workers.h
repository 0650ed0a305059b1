// Child processes that compile one module after the other, and may crash or hang.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/target/compile_job.h"

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
  kLine,       ///< a line requested it
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

/// How a job is watched.
struct WorkerWatch {
  std::chrono::milliseconds time_limit{0};
  /// Called with each step that the process tells: `compiling`.
  std::function<void(std::string_view step)> on_step = {};
  /// Called about ten times per second.
  std::function<void()> on_tick = {};
};

/// Value type: the result of a job.
struct WorkerAnswer {
  /// For deserialize_answer(); none if the process ended or was stopped before it answered.
  std::optional<std::string> bytes = std::nullopt;
  /// How the process ended, if there is no answer.
  ChildEnd end = {};
  /// What the process wrote to standard error during the job.
  std::string log = {};
};

/// Owner of processes of the program `meshard-compile`, which stay for later compiles. The first
/// compile of a process takes longer than a later one: it also starts the program, loads the plugin
/// and sets the compiler up.
///
/// Compiles at the same time have a process each. A process that crashes or is stopped is given
/// up; if it had compiled before, the job runs again in a new one, so that its result does not
/// depend on earlier jobs. The destructor ends the processes and removes their files. Thread-safe.
class CompileWorkers {
 public:
  /// @param most_jobs after which a process is replaced, because compilers keep memory
  explicit CompileWorkers(std::size_t most_jobs = 200);
  CompileWorkers(const CompileWorkers&) = delete;
  CompileWorkers& operator=(const CompileWorkers&) = delete;
  ~CompileWorkers();

  /// Runs a job, whose `dump_folder` is set to a temporary one.
  /// @error not found: there is no program `meshard-compile`; unavailable: it cannot be started;
  /// errors of writing the request
  Result<WorkerAnswer> run(CompileJob job, const WorkerWatch& watch);

  /// The number of processes that were started so far.
  std::size_t started() const;

 private:
  struct Worker;
  struct Pool;
  Result<std::unique_ptr<Worker>> start(const std::string& plugin);
  std::unique_ptr<Pool> pool_;
};

/// The path of meshard-compile. If MESHARD_COMPILE is set, only that file is checked. Otherwise
/// searches, in order: the running program's folder and its `../libexec/meshard/` and `../bin/`;
/// the same around libmeshard if it is a shared library; meshard's installation; PATH.
/// @error not found, with the places that were searched
Result<std::string> find_compile_program();

}  // namespace meshard
