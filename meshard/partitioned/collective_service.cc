// Tested in tests/partitioned/collective_order_test.cc.
#include "meshard/partitioned/collective_service.h"

#include <map>
#include <mutex>
#include <optional>

#include "meshard/base/awaiting.h"
#include "meshard/partitioned/collective_call.h"
#include "meshard/processes/wait_observer.h"

namespace meshard {
namespace {

struct Service {
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<LaunchHistory> history;
};

struct Services {
  std::mutex mutex;
  std::map<int, Service> by_device;
};

// Never destroyed: programs may still run when the process ends.
Services& services() {
  static Services& all = *new Services();
  return all;
}

Service service_of(int device) {
  Services& all = services();
  std::lock_guard lock(all.mutex);
  auto found = all.by_device.find(device);
  return found == all.by_device.end() ? Service() : found->second;
}

Result<void> serve_collective(const pjrt::HostCall& call) {
  MESHARD_ASSIGN_OR_RETURN(CollectiveCall collective, CollectiveCall::from_attributes(call));
  Service service = service_of(call.device);
  if (service.communicator == nullptr)
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[", to_string(collective.kind), "] device ", call.device,
                     " is not connected to other processes"))
        .with_note(cat("in ", collective.where));
  if (collective.kind == CollectiveCallKind::kPosition)  // waits for nobody
    return perform(collective, call, *service.communicator);
  ObservedWait observed("collective", to_string(collective.kind), collective.where);
  if (service.history == nullptr) return perform(collective, call, *service.communicator);
  // A plugin may run a small program in the thread that launches it.
  std::optional<internal::AwaitingScope> awaiting;
  if (internal::is_program_thread()) awaiting.emplace(internal::Awaiting{.what = "a collective"});
  service.history->begin_collective(to_string(collective.kind), collective.where);
  Result<void> done = perform(collective, call, *service.communicator);
  service.history->end_collective();
  return done;
}

}  // namespace

Result<void> accept_collectives(const pjrt::Client& client) {
  return pjrt::accept_host_calls(client, kCollectiveTarget, serve_collective);
}

Result<CollectiveService> CollectiveService::start(const pjrt::Client& client,
                                                   std::shared_ptr<Communicator> communicator,
                                                   std::vector<int> devices,
                                                   std::shared_ptr<LaunchHistory> history) {
  MESHARD_RETURN_IF_ERROR(accept_collectives(client));
  Services& all = services();
  std::lock_guard lock(all.mutex);
  for (int device : devices)
    if (all.by_device.count(device))
      return Error(ErrorCode::kAlreadyExists,
                   cat("[collective] device ", device, " already communicates"));
  for (int device : devices) all.by_device[device] = {communicator, history};
  return CollectiveService(std::move(devices));
}

CollectiveService::~CollectiveService() {
  if (devices_.empty()) return;
  Services& all = services();
  std::lock_guard lock(all.mutex);
  for (int device : devices_) all.by_device.erase(device);
}

}  // namespace meshard
