// The processes of one run: a program that is started several times, on one machine or many.
//
// Without initialize_processes(), and if the program is started once, there is one process. Started
// by mpirun, processes find each other by MPI; otherwise by the variables of their launcher
// (launchers.h), or by these:
//
//   MESHARD_PROCESS_ADDRESS   where process 0 listens: host:port, or the path of a Unix socket
//   MESHARD_PROCESS_RANK      the number of this process, from 0
//   MESHARD_PROCESS_COUNT     how many there are
//   MESHARD_PROCESS_SECRET    at least 16 characters, the same in all; required for host:port
//
// MESHARD_CPU_DEVICES is the number of CPU devices of each process in which it is set.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/awaiting.h"
#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/processes/communicator.h"
#include "meshard/processes/loss.h"
#include "meshard/processes/store.h"

namespace meshard {

/// A value: one process of the run.
struct ProcessInfo {
  int rank = 0;
  std::string host;
  int pid = 0;
  /// How many devices of the run it has. Their ids are first_device, first_device + 1, ...
  int local_devices = 1;
  int first_device = 0;

  MESHARD_FIELDS(rank, host, pid, local_devices, first_device)

  /// `process 2 (pid 4711 on alpha)`
  std::string to_string() const;
};

/// A value: the current activity of a process.
struct ProcessActivity {
  /// `all-reduce %12, train.cc:42`
  std::string text = {};
  std::chrono::steady_clock::time_point since = {};
  /// Since when it waits in a collective; nothing if it does not.
  std::optional<std::chrono::steady_clock::time_point> in_collective = {};
  /// The launches so far; a collective may need all of them.
  std::vector<internal::SharedStep> launches = {};
};

/// What carries the collectives between the CPU devices of different processes.
enum class Collectives : std::uint8_t {
  kAutomatic,  ///< MPI if a launcher of MPI has started the processes, else Gloo
  kMpi,
  kGloo,
  kNone,  ///< nothing: each process has its own CPU devices only
};

template <>
struct EnumNames<Collectives> {
  static constexpr EnumName<Collectives> kNames[] = {{Collectives::kAutomatic, "automatic"},
                                                     {Collectives::kMpi, "mpi"},
                                                     {Collectives::kGloo, "gloo"},
                                                     {Collectives::kNone, "none"}};
};

/// How a process takes part in a run.
struct ProcessesOptions {
  /// As the variables MESHARD_PROCESS_*, which are not read if `address` is set.
  std::string address = {};
  int rank = -1;
  int count = 0;
  std::string secret = {};
  /// How many CPU devices of the run this process has. 0: MESHARD_CPU_DEVICES, otherwise 1. If
  /// there is one process, RuntimeOptions::cpu_devices applies instead.
  int local_devices = 0;
  /// kAutomatic: MESHARD_COLLECTIVES, which has the same names (`gloo`); the same in all processes.
  Collectives collectives = Collectives::kAutomatic;
  /// How long to wait until all processes have joined.
  std::chrono::milliseconds join_limit = std::chrono::minutes(5);
  /// A process that gives no sign of life for this time is lost; at least 1 s. 0:
  /// MESHARD_PROCESS_SILENCE_SECONDS, otherwise 3.5 s. Use more where machines may pause, such as
  /// virtual machines that move to another host. Should be the same in all processes.
  std::chrono::milliseconds silence_limit{0};
  /// Called for each process that is lost, on a thread of its own. It must return soon, and neither
  /// call finalize() nor wait for other processes. Without it, the loss is printed on the standard
  /// error stream and the process ends with status 1: a thread that is blocked in MPI can only be
  /// ended with its process.
  std::function<void(const ProcessLoss&)> on_loss = {};
};

/// A handle on this process's place in the run. All functions may be called from several threads.
class Processes {
 public:
  /// The number of this process, from 0.
  int process_index() const;
  /// The former name of process_index(), for one more release.
  int rank() const { return process_index(); }
  int size() const;
  const std::vector<ProcessInfo>& members() const;

  Store& store() const;

  /// Waits until all processes have called barrier() with this name. The name may be used again.
  /// @error deadline exceeded if that does not happen within `limit`; the message names the missing
  /// processes with host, pid, and last activity, or their own limit if that has passed.
  /// Unavailable if a process is lost or has ended
  Result<void> barrier(std::string_view name, std::chrono::milliseconds limit = kNoTimeLimit,
                       SourceLocation where = SourceLocation::current()) const;

  /// Collectives between processes: by MPI if they were started by it, otherwise by Gloo. Null if
  /// there is one process, if there is no Gloo, or with MESHARD_COLLECTIVES=none (PJRT communicates
  /// between GPUs and TPUs itself).
  ProcessCommunicator* communicator() const;
  /// Why communicator() is null without MPI: which process has no Gloo, and what it lacks.
  const std::string& why_no_communicator() const;

  /// Says what this process does next: `all-reduce %12, train.cc:42`. The others report it if this
  /// process is lost. Cheap: it is sent with the next sign of life, 4 times a second.
  void entering(std::string_view activity) const;

  /// The result of `source` is reported while entering() has set no activity. Called 4 times a
  /// second on the connection's thread; it must return at once, and not call this object.
  using ActivitySource = std::function<ProcessActivity()>;
  void set_activity_source(ActivitySource source) const;

  /// Regards a process as lost because it does something else than this one. ProcessesOptions::
  /// on_loss is called, or this process ends.
  void report_out_of_step(int rank, std::string difference) const;
  /// Like report_out_of_step(), because of a failure in that process.
  void report_given_up(int rank, std::string failure) const;

  /// Leaves the run. The end of the process does it, too. Process 0 waits for the others, because
  /// it keeps the store; with MPI, all wait for all. First waits for io::save_async().
  /// @error MPI's own; the error of a save that was not retrieved
  Result<void> finalize() const;

 private:
  friend Result<Processes> initialize_processes(ProcessesOptions options);
  friend Processes processes();
  class State;
  explicit Processes(State* state) : state_(state) {}
  State* state_;  // lives until the process ends
};

/// Joins the run; called once, before other threads use meshard. Waits until all processes have
/// joined.
///
/// A process that dies, is suspended, or ends with a status other than 0 is reported to all others
/// within 5 s (ProcessesOptions::on_loss). A normal end (return from main, exit(0), finalize()) is
/// a loss only if others wait for the process and cannot go on without it; so are processes that
/// wait for each other. _exit() is a loss. A long computation is none: a thread of its own gives
/// signs of life.
///
/// @error invalid argument for missing, invalid or contradictory options and variables; deadline
/// exceeded, naming the missing processes; unauthenticated for a wrong secret; not found if the
/// program was started by mpirun but libmeshard_mpi.so is missing
Result<Processes> initialize_processes(ProcessesOptions options = {});

/// The run that this process takes part in; one process before initialize_processes().
Processes processes();

namespace internal {

/// Registers work that has to end before this process leaves the run: Processes::finalize() calls
/// `finish` first, each time, and returns its error.
void before_finalize(std::function<Result<void>()> finish);

}  // namespace internal

}  // namespace meshard
