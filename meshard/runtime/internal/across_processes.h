// What a process needs to run programs together with other processes.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/partitioned/collective_order.h"
#include "meshard/partitioned/collective_service.h"
#include "meshard/pjrt/client.h"
#include "meshard/processes/background_messages.h"
#include "meshard/processes/processes.h"
#include "meshard/runtime/internal/order_watch.h"
#include "meshard/runtime/internal/process_steps.h"

namespace meshard {

/// The part of one process, with its devices, in programs over the CPU devices of several. One for
/// each client whose devices belong to several processes (process_devices.h); it lives as long as
/// the platforms. Thread-safe, but all processes must make the calls of order() and in_order() in
/// the same order.
class AcrossProcesses : public ProcessSteps {
 public:
  /// @pre run.communicator(); the client has the devices of all processes, one of them is its own
  /// @error those of CollectiveService::start
  static Result<std::unique_ptr<AcrossProcesses>> start(Processes run, const pjrt::Client& client);

  ProcessCommunicator& communicator() const { return *run().communicator(); }
  /// Orders the launches of programs that communicate.
  CollectiveOrder& order() { return order_; }
  /// Calls `communicate` when all earlier launches of this process that communicate have ended, and
  /// before later ones begin. `what` is equal in all of the processes `ranks`, which take part.
  /// @error that of `communicate`, or of an earlier launch
  Result<void> in_order(const std::vector<int>& ranks, std::string_view what, SourceLocation where,
                        const std::function<Result<void>()>& communicate);
  /// Records a step that the processes `ranks` take together, and that waits for nothing.
  void record(const std::vector<int>& ranks, std::string_view what, SourceLocation where);

  /// The messages that carry values between processes, apart from those of programs. The processes
  /// must make the calls that use them in the same order.
  BackgroundMessages& messages() { return *messages_; }
  /// Says that this process will not do what others wait for: they get an error that contains this
  /// one. Later launches and transfers of this process that communicate fail.
  void give_up(const Error& error);

  /// A client with as many virtual devices as the run has devices, which only compiles. Created at
  /// the first use, because only the lowest rank of a mesh partitions its programs.
  /// @error those of Client::create
  Result<pjrt::Client> partitioner();

  /// The end of the services, before another client takes its place. Launches in flight go on.
  void stop();

 private:
  AcrossProcesses(Processes run, const pjrt::Client& client)
      : ProcessSteps(run, client), order_(client) {}
  std::string failure_key(int rank) const;
  // What a process has reported of its failure.
  Result<std::optional<std::string>> reported_failure(int rank) const;
  // Why nothing more comes from a process.
  std::optional<Error> failure_of(int rank) const;
  void report_failure(const Error& error);

  CollectiveOrder order_;
  std::vector<CollectiveService> services_;  // of each device
  std::optional<OrderWatch> watch_;
  std::unique_ptr<BackgroundMessages> messages_;
  std::mutex mutex_;  // of the partitioner
  std::optional<pjrt::Client> partitioner_;
};

}  // namespace meshard
