// Tested in tests/plugin/pjrt_fake_test.cc.
#include "meshard/pjrt/internal/client_state.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <thread>

#include "meshard/base/stall_report.h"
#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/internal/await.h"
#include "meshard/pjrt/internal/process_end.h"
#include "meshard/pjrt/launch.h"

namespace meshard::pjrt::internal {
namespace {

// The clients of the process, for reports.
struct Clients {
  std::mutex mutex;
  std::vector<ClientState*> all;
};

Clients& clients() {
  static auto* instance = new Clients;
  return *instance;
}

std::string launches_in_flight() {
  std::lock_guard lock(clients().mutex);
  std::string text;
  for (ClientState* client : clients().all) append(text, client->list_launches());
  return text.empty() ? "; no launch is in flight" : "; in flight:" + text;
}

}  // namespace

void add_references(ClientState* client, long count) noexcept {
  client->references.fetch_add(count, std::memory_order_relaxed);
}

void drop_references(ClientState* client, long count) noexcept {
  if (client->references.fetch_sub(count, std::memory_order_acq_rel) == count) delete client;
}

void drop_reference(ClientState* client) noexcept { drop_references(client, 1); }

ClientState::~ClientState() {
  {
    std::lock_guard lock(clients().mutex);
    std::erase(clients().all, this);
  }
  in_flight.drop_if([](LaunchRecord&) { return true; });  // before the client
  MESHARD_PJRT_ARGS(PJRT_Client_Destroy, args);
  args.client = raw;
  (void)MESHARD_PJRT_CALL(api, PJRT_Client_Destroy, args);  // no one is left to handle an error
}

Result<void> ClientState::initialize(const ProcessDevices* run) {
  MESHARD_PJRT_QUERY(api, PJRT_Client_PlatformName, says, client, raw);
  platform.assign(says.platform_name, says.platform_name_size);
  std::transform(platform.begin(), platform.end(), platform.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.empty()) name = platform;
  MESHARD_PJRT_QUERY(api, PJRT_Client_PlatformVersion, version, client, raw);
  platform_version.assign(version.platform_version, version.platform_version_size);
  MESHARD_PJRT_QUERY(api, PJRT_Client_ProcessIndex, process, client, raw);
  process_index = process.process_index;
  const int minor = plugin.version().minor;
  MESHARD_ASSIGN_OR_RETURN(quirks, quirks_of(platform, minor));
  rules = launch_rules(platform, minor, quirks);

  MESHARD_PJRT_QUERY(api, PJRT_Client_Devices, list, client, raw);
  for (std::size_t i = 0; i < list.num_devices; ++i) {
    auto read = Device::read(api, list.devices[i], name);
    if (!read.ok()) return read.error().with_note(cat("while reading device number ", i));
    std::unique_ptr<Device> device = *std::move(read);
    by_id[device->id()] = device.get();
    by_handle[list.devices[i]] = device.get();
    devices.push_back(std::move(device));
  }
  MESHARD_PJRT_QUERY(api, PJRT_Client_AddressableDevices, ours, client, raw);
  for (std::size_t i = 0; i < ours.num_addressable_devices; ++i)
    if (const Device* device = find(ours.addressable_devices[i])) addressable.push_back(device);
  if (addressable.empty())
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[client] ", plugin.path(), " created a client without addressable devices"));
  if (run) MESHARD_RETURN_IF_ERROR(add_devices_of_others(*run));
  std::lock_guard lock(clients().mutex);
  clients().all.push_back(this);
  meshard::internal::set_stall_detail(launches_in_flight);
  return {};
}

Result<void> ClientState::add_devices_of_others(const ProcessDevices& run) {
  if (static_cast<std::size_t>(run.process) >= run.counts.size() ||
      static_cast<std::size_t>(run.counts[static_cast<std::size_t>(run.process)]) !=
          addressable.size() ||
      devices.size() != addressable.size())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[client] process ", run.process, " of ", run.counts.size(), " has ",
                     addressable.size(), " of the plugin's ", devices.size(), " devices"));
  std::vector<std::unique_ptr<Device>> ours = std::move(devices);
  const DeviceDescription like = ours[0]->description();
  devices.clear();
  by_id.clear();
  int id = 0;
  for (int process = 0; process < static_cast<int>(run.counts.size()); ++process)
    for (int i = 0; i < run.counts[static_cast<std::size_t>(process)]; ++i, ++id) {
      if (process == run.process) {
        ours[static_cast<std::size_t>(i)]->renumber(id, process);
        devices.push_back(std::move(ours[static_cast<std::size_t>(i)]));
      } else {
        devices.push_back(Device::elsewhere(api, like.renumbered(id, process), name));
      }
      by_id[id] = devices.back().get();
    }
  process_index = run.process;
  return {};
}

void ClientState::begin_launch(std::unique_lock<std::mutex>& lock) {
  while (is_held()) [[unlikely]] {
      lock.unlock();
      stay_until_the_end();
      lock.lock();
    }
  auto most = static_cast<std::size_t>(rules.max_in_flight);
  if (most == 0) {
    if (in_flight.size() >= look_at) {
      in_flight.drop_if([](LaunchRecord& record) { return record.is_through(); });
      look_at = 2 * in_flight.size() + 64;
    }
    ++entering;
    return;
  }
  while (true) {
    while (!in_flight.empty() && in_flight.oldest()->done.load(std::memory_order_acquire))
      in_flight.drop(in_flight.oldest());
    if (is_held()) [[unlikely]] {
      lock.unlock();
      stay_until_the_end();
      lock.lock();
      continue;
    }
    if (in_flight.size() + entering < most) break;
    if (in_flight.empty()) {
      ++threads_that_wait;
      launch_ended.wait(lock);
      --threads_that_wait;
      continue;
    }
    LaunchRecord* oldest = in_flight.oldest();
    oldest->references.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();          // it may wait for a launch of another thread
    (void)oldest->await();  // its error is for whoever holds the launch
    drop_launch(oldest);
    lock.lock();
  }
  ++entering;
}

void ClientState::end_launch(LaunchRecord* record, LaunchRecord* spare) {
  std::unique_lock lock(launch_mutex);
  --entering;
  if (record != nullptr) in_flight.add(record);
  if (spare != nullptr) spare_launch.reset(spare);
  if (threads_that_wait == 0) [[likely]]
    return;
  lock.unlock();
  launch_ended.notify_one();
}

void ClientState::reuse(LaunchRecord* record) {
  // No one else can find it to add a reference.
  if (spare_launch || record->references.load(std::memory_order_acquire) != 1) {
    drop_launch(record);
    return;
  }
  record->clear();
  spare_launch.reset(record);
}

void ClientState::await_last_launches() {
  hold_other_threads();
  for (std::unique_lock lock(launch_mutex); entering > 0; lock.lock()) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  await_launches();
}

void ClientState::await_failed_launches() {
  await_those([](LaunchRecord& record) { return record.has_failed(); });
}

void ClientState::await_launches() {
  await_those([](LaunchRecord&) { return true; });
}

void ClientState::await_those(bool (*wanted)(LaunchRecord&)) {
  std::vector<LaunchRecord*> waited;
  {
    std::lock_guard lock(launch_mutex);
    for (LaunchRecord& record : in_flight)
      if (wanted(record)) waited.push_back(&record);
    for (LaunchRecord* record : waited) record->references.fetch_add(1, std::memory_order_relaxed);
  }
  for (LaunchRecord* record : waited) (void)record->await();  // as above
  std::lock_guard lock(launch_mutex);
  for (LaunchRecord* record : waited) {
    if (record->is_listed) in_flight.drop(record);
    drop_launch(record);
  }
}

Result<void> ClientState::stuck_launch(const Device& device) {
  LaunchRecord* stuck = nullptr;
  std::size_t failed = 0;
  {
    std::lock_guard lock(launch_mutex);
    for (LaunchRecord& record : in_flight) {
      bool waits = false, has_failed = false;
      for (std::size_t k = 0; k < record.events.size(); ++k) {
        bool through = record.is_through(k);
        waits |= !through && &(*record.site->devices)[k] == &device;
        if (!through || has_failed || record.events.size() == 1) continue;
        has_failed = !outcome_of(api, record.events[k], "").ok();
        if (has_failed) failed = k;
      }
      if (!waits || !has_failed) continue;
      stuck = &record;
      stuck->references.fetch_add(1, std::memory_order_relaxed);
      break;
    }
  }
  if (stuck == nullptr) return {};
  Result<void> outcome = outcome_of(api, stuck->events[failed], "PJRT_LoadedExecutable_Execute");
  Error error = outcome.error().with_note(
      cat("while running ", stuck->to_string(), "; it failed on device ",
          (*stuck->site->devices)[failed].id(), " and has not finished on device ", device.id(),
          device.of_platform()));
  drop_launch(stuck);
  if (rules.error_wedges_client) wedged = true;
  return error;
}

std::string ClientState::list_launches() {
  std::lock_guard lock(launch_mutex);
  std::string text;
  auto now = std::chrono::steady_clock::now();
  for (const LaunchRecord& record : in_flight) {
    if (record.is_through()) continue;
    append(text, "\n  ", record.to_string(), ", ",
           std::chrono::duration_cast<std::chrono::seconds>(now - record.begun).count(),
           " s ago; not finished on");
    for (std::size_t k = 0; k < record.events.size(); ++k)
      if (!record.is_through(k)) append(text, " ", (*record.site->devices)[k].id());
  }
  return text;
}

const ArrayType* ClientState::intern(const ArrayType& type) {
  std::lock_guard lock(types_mutex);
  return &*types.insert(type).first;
}

const DeviceList* ClientState::intern(std::span<const Device* const> list) {
  std::size_t hash = list.size();
  for (const Device* device : list) hash = hash * 31 + static_cast<std::size_t>(device->id());
  std::lock_guard lock(device_lists_mutex);
  auto [begin, end] = device_lists.equal_range(hash);
  for (auto known = begin; known != end; ++known)
    if (std::ranges::equal(known->second->devices(), list)) return known->second.get();
  auto made =
      std::make_unique<const DeviceList>(std::vector<const Device*>(list.begin(), list.end()));
  return device_lists.emplace(hash, std::move(made))->second.get();
}

const Device* ClientState::find(PJRT_Device* device) const {
  auto found = by_handle.find(device);
  return found == by_handle.end() ? nullptr : found->second;
}

}  // namespace meshard::pjrt::internal
