// Child processes that compile one module after the other.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/target/child_program.h"
#include "meshard/target/compile_job.h"

namespace meshard {

/// How a job is watched.
struct WorkerWatch {
  std::chrono::milliseconds time_limit{0};
  /// Called with each step that the process tells: `compiling`.
  std::function<void(std::string_view step)> on_step = {};
  /// Called about ten times per second.
  std::function<void()> on_tick = {};
};

/// Value type: what came of a job.
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
