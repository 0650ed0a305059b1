// Tested in tests/processes/check_across.py.
#include "meshard/runtime/internal/across_processes.h"

#include <algorithm>

#include "meshard/base/cat.h"
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
  std::vector<std::shared_ptr<Communicator>> communicators;
  std::vector<int> counts;
  for (const ProcessInfo& member : run.members()) counts.push_back(member.local_devices);
  if (std::ranges::all_of(counts, [](int count) { return count == 1; }))
    communicators.push_back(shared(across->communicator()));  // a process is its device
  else
    for (auto& each : make_device_communicators(across->communicator(), std::move(counts)))
      communicators.push_back(std::move(each));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    MESHARD_ASSIGN_OR_RETURN(auto service, CollectiveService::start(client, communicators[i],
                                                                    {devices[i]->plugin_id()}));
    across->services_.push_back(std::move(service));
  }
  return across;
}

Result<void> AcrossProcesses::in_order(
    const std::function<Result<void>(Communicator&)>& communicate) {
  return order_.communicate([&] { return communicate(communicator()); });
}

Result<pjrt::Client> AcrossProcesses::partitioner() {
  std::lock_guard lock(mutex_);
  if (!partitioner_) {
    pjrt::NamedValue count{"cpu_device_count", static_cast<std::int64_t>(client_.device_count())};
    MESHARD_ASSIGN_OR_RETURN(partitioner_,
                             pjrt::Client::create(client_.plugin(), std::span(&count, 1)));
  }
  return *partitioner_;
}

std::string AcrossProcesses::next_step(const std::vector<int>& ranks) {
  std::lock_guard lock(mutex_);
  return cat("meshard/step/", join(ranks, ","), "/", generation_, ".", steps_[ranks]++);
}

void AcrossProcesses::stop() { services_.clear(); }

std::string names_of_processes(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "process " : "processes ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    append(text, cat(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]));
  return text;
}

}  // namespace meshard
