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
  /// before later ones begin. It may use the communicator.
  /// @error that of `communicate`, or of an earlier launch
  /// `what` is equal in all of the processes `ranks`, which take part.
  Result<void> in_order(const std::vector<int>& ranks, std::string_view what, SourceLocation where,
                        const std::function<Result<void>(ProcessCommunicator&)>& communicate);

  /// A client with as many virtual devices as the run has devices, which only compiles. Created at
  /// the first use, because only the lowest rank of a mesh partitions its programs.
  /// @error those of Client::create
  Result<pjrt::Client> partitioner();

  /// The end of the services, before another client takes its place. Launches in flight go on.
  void stop();

 private:
  AcrossProcesses(Processes run, const pjrt::Client& client)
      : ProcessSteps(run, client), order_(client) {}

  CollectiveOrder order_;
  std::vector<CollectiveService> services_;  // of each device
  std::optional<OrderWatch> watch_;
  std::mutex mutex_;  // of the partitioner
  std::optional<pjrt::Client> partitioner_;
};

}  // namespace meshard
