// What a process needs to run programs together with other processes.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/source_location.h"
#include "meshard/partitioned/collective_order.h"
#include "meshard/partitioned/collective_service.h"
#include "meshard/pjrt/client.h"
#include "meshard/processes/processes.h"

namespace meshard {

/// The part of one process, with its devices, in programs over the CPU devices of several. One for
/// each client whose devices belong to several processes (process_devices.h); it lives as long as
/// the platforms. Thread-safe, but all processes must make the calls of order() and in_order() in
/// the same order.
class AcrossProcesses {
 public:
  /// @pre run.communicator(); the client has the devices of all processes, one of them is its own
  /// @error those of CollectiveService::start
  static Result<std::unique_ptr<AcrossProcesses>> start(Processes run, const pjrt::Client& client);

  const Processes& run() const { return run_; }
  int rank() const { return run_.rank(); }
  ProcessCommunicator& communicator() const { return *run_.communicator(); }
  pjrt::Client client() const { return client_; }
  /// Orders the launches of programs that communicate.
  CollectiveOrder& order() { return order_; }
  /// Calls `communicate` when all earlier launches of this process that communicate have ended, and
  /// before later ones begin. It may use the communicator.
  /// @error that of `communicate`, or of an earlier launch
  Result<void> in_order(const std::function<Result<void>(Communicator&)>& communicate);

  /// A client with as many virtual devices as the run has devices, which only compiles. Created at
  /// the first use, because only the lowest rank of a mesh partitions its programs.
  /// @error those of Client::create
  Result<pjrt::Client> partitioner();

  /// The key in the store of the next step that the processes `ranks` take together: each set of
  /// processes counts its own.
  std::string next_step(const std::vector<int>& ranks);

  /// The end of the services, before another client takes its place. Launches in flight go on.
  void stop();

 private:
  AcrossProcesses(Processes run, const pjrt::Client& client)
      : run_(run), client_(client), order_(client) {}

  Processes run_;
  pjrt::Client client_;
  CollectiveOrder order_;
  std::vector<CollectiveService> services_;  // of each device
  std::mutex mutex_;                         // of the members below
  std::optional<pjrt::Client> partitioner_;
  std::map<std::vector<int>, std::uint64_t> steps_;
  const int generation_ = next_generation_++;  // after a restart, steps have other keys
  static inline std::atomic<int> next_generation_{0};
};

/// `process 2`, `processes 0, 1 and 3`.
std::string names_of_processes(const std::vector<int>& ranks);

}  // namespace meshard
