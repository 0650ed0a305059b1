// Tested in tests/processes/check_across.py.
#include "meshard/runtime/internal/across_processes.h"

namespace meshard {
namespace {

// Does not own: the communicator lives as long as the process.
std::shared_ptr<Communicator> shared(Communicator& communicator) {
  return {std::shared_ptr<void>(), &communicator};
}

}  // namespace

Result<std::unique_ptr<AcrossProcesses>> AcrossProcesses::start(Processes run,
                                                                const pjrt::Client& client) {
  const pjrt::Device& device = *client.addressable_devices()[0];
  std::unique_ptr<AcrossProcesses> across(new AcrossProcesses(run, client, device));
  MESHARD_ASSIGN_OR_RETURN(
      across->service_,
      CollectiveService::start(client, shared(across->communicator()), {device.plugin_id()}));
  return across;
}

Result<void> AcrossProcesses::in_order(
    const std::function<Result<void>(Communicator&)>& communicate) {
  return order_.communicate([&] { return communicate(communicator()); });
}

Result<pjrt::Client> AcrossProcesses::partitioner() {
  std::lock_guard lock(mutex_);
  if (!partitioner_) {
    pjrt::NamedValue count{"cpu_device_count", static_cast<std::int64_t>(client().device_count())};
    MESHARD_ASSIGN_OR_RETURN(partitioner_,
                             pjrt::Client::create(client().plugin(), std::span(&count, 1)));
  }
  return *partitioner_;
}

void AcrossProcesses::stop() { service_.reset(); }

}  // namespace meshard
