// The fabric of CPU devices of several processes, which meshard joins.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/partitioned/collective_call.h"
#include "meshard/partitioned/launch_history.h"
#include "meshard/pjrt/client.h"
#include "meshard/processes/background_messages.h"
#include "meshard/processes/processes.h"
#include "meshard/runtime/internal/across_processes/order_watch.h"
#include "meshard/runtime/internal/across_processes/shared_fabric.h"

namespace meshard {

/// The part of one process, with its devices, in programs over the CPU devices of several. One for
/// each client whose devices belong to several processes (process_devices.h); it lives as long as
/// the platforms. Thread-safe, but all processes must make the calls of order() and in_order() in
/// the same order.
class AcrossProcesses final : public SharedFabric {
 public:
  /// @pre run.communicator(); the client has the devices of all processes, one of them is its own
  /// @error those of CollectiveService::start
  static Result<std::unique_ptr<AcrossProcesses>> start(const Platforms& platforms, Processes run,
                                                        const pjrt::Client& client);

  std::shared_ptr<const LoadedProgram> load(const ProgramToLoad& what) override;
  RouteOptions::Exchange exchange() const override { return RouteOptions::Exchange::kPieces; }
  Result<std::vector<pjrt::Buffer>> receive(const DeviceArray& source, const Sharding& target,
                                            SourceLocation where) override;
  bool gather(const DeviceArray& source, int to, void* destination, SourceLocation where) override;
  void give_up(const Error& error) override;
  void finish() override { messages_->finish(); }
  void stop() override;

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
  /// A client with as many virtual devices as the run has devices, which only compiles. Created at
  /// the first use, because only the lowest rank of a mesh partitions its programs.
  /// @error those of Client::create
  Result<pjrt::Client> partitioner();

 private:
  AcrossProcesses(const Platforms& platforms, Processes run, const pjrt::Client& client)
      : SharedFabric(platforms, run, client), order_(client) {}
  std::string failure_key(int rank) const;
  // The failure that a process has reported.
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
