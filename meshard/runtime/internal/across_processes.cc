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
      across->service_, CollectiveService::start(client, shared(across->communicator()),
                                                 {device.plugin_id()}, across->order_.history()));
  std::shared_ptr<LaunchHistory> history = across->order_.history();
  run.set_activity_source([history](auto& since) { return history->activity(since); });
  across->watch_.emplace(run, history, across->announcement({}, "launches/"));
  return across;
}

Result<void> AcrossProcesses::in_order(
    const std::vector<int>& ranks, std::string_view what, SourceLocation where,
    const std::function<Result<void>(Communicator&)>& communicate) {
  auto step = std::make_shared<const LaunchHistory::Step>(
      LaunchHistory::Step{fingerprint(what), std::string(what)});
  return order_.communicate([&] { return communicate(communicator()); },
                            {order_.history()->track(ranks), std::move(step)}, where);
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

void AcrossProcesses::stop() {
  service_.reset();
  watch_.reset();
}

}  // namespace meshard
