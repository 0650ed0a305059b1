// Tested in tests/processes/check_across.py.
#include "meshard/runtime/internal/across_processes.h"

#include <algorithm>

#include "meshard/processes/device_communicator.h"

namespace meshard {
namespace {

// Does not own: the communicator lives as long as the process.
std::shared_ptr<Communicator> shared(Communicator& communicator) {
  return {std::shared_ptr<void>(), &communicator};
}

}  // namespace

Result<std::unique_ptr<AcrossProcesses>> AcrossProcesses::start(Processes run,
                                                                const pjrt::Client& client) {
  std::unique_ptr<AcrossProcesses> across(new AcrossProcesses(run, client));
  std::span<const pjrt::Device* const> devices = client.addressable_devices();
  std::shared_ptr<LaunchHistory> history = across->order_.history();
  std::vector<std::shared_ptr<Communicator>> communicators;
  std::vector<int> counts;
  for (const ProcessInfo& member : run.members()) counts.push_back(member.local_devices);
  if (std::ranges::all_of(counts, [](int count) { return count == 1; }))
    communicators.push_back(shared(across->communicator()));  // a process is its device
  else
    for (auto& each : make_device_communicators(across->communicator(), std::move(counts)))
      communicators.push_back(std::move(each));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    MESHARD_ASSIGN_OR_RETURN(
        auto service,
        CollectiveService::start(client, communicators[i], {devices[i]->plugin_id()}, history));
    across->services_.push_back(std::move(service));
  }
  run.set_activity_source([history](auto& since) { return history->activity(since); });
  across->watch_.emplace(run, history, across->announcement({}, "launches/"));
  return across;
}

Result<void> AcrossProcesses::in_order(
    const std::vector<int>& ranks, std::string_view what, SourceLocation where,
    const std::function<Result<void>(ProcessCommunicator&)>& communicate) {
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
  services_.clear();
  watch_.reset();
}

}  // namespace meshard
