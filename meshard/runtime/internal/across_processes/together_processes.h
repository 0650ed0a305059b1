// The fabric of devices of several processes that the plugin connects (GPU, TPU).
#pragma once
#include <memory>
#include <utility>

#include "meshard/runtime/internal/across_processes/shared_fabric.h"

namespace meshard {

/// Programs over devices of several processes are compiled by each of these for all their devices:
/// the plugin partitions them and runs the part of each process. The processes first check that all
/// of them are about to run the same program. Nothing is loaded from disk, because plugins exchange
/// data while they compile. A process that has none of the devices waits until the others have
/// compiled the program, and learns the shardings of the results.
///
/// Values go between processes only with programs.
class TogetherProcesses final : public SharedFabric {
 public:
  /// @param run of one process if the processes are not connected (initialize_processes()):
  /// only devices of this process can be used then
  TogetherProcesses(const Platforms& platforms, Processes run, pjrt::Client client)
      : SharedFabric(platforms, run, std::move(client)) {}

  std::shared_ptr<const LoadedProgram> load(const ProgramToLoad& what) override;
  RouteOptions::Exchange exchange() const override { return RouteOptions::Exchange::kWhole; }
  bool gather(const DeviceArray& source, int to, void* destination, SourceLocation where) override;
};

}  // namespace meshard
