// The state that all objects of one client share.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "meshard/pjrt/array_type.h"
#include "meshard/pjrt/device.h"
#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/internal/launch_record.h"
#include "meshard/pjrt/launch_rules.h"
#include "meshard/pjrt/plugin.h"
#include "meshard/pjrt/run_rules.h"

namespace meshard::pjrt::internal {

struct ClientState {
  ClientState(Plugin from, PJRT_Client* client, std::string_view called,
              std::shared_ptr<KeyValueStore> exchange = nullptr)
      : plugin(from), api(from.api()), raw(client), store(std::move(exchange)), name(called) {}
  ClientState(const ClientState&) = delete;
  ClientState& operator=(const ClientState&) = delete;
  ~ClientState();

  /// Reads the platform and the devices from the plugin. `run`, if not null: adds the devices of
  /// other processes.
  Result<void> initialize(const ProcessDevices* run);
  /// The unique object for `type` in this client.
  const ArrayType* intern(const ArrayType& type);
  /// The unique object for these devices, in this order, in this client.
  const DeviceList* intern(std::span<const Device* const> devices);
  const Device* find(PJRT_Device* device) const;

  /// Waits until one more launch is allowed, and counts it as entering.
  /// @pre `lock` holds launch_mutex, which it gives up while it waits. @post it holds it
  void begin_launch(std::unique_lock<std::mutex>& lock);
  /// Ends what begin_launch began. `record`: the launch is in flight; null: it is not. `spare`: the
  /// record of a launch that is over, for the next one, or null.
  void end_launch(LaunchRecord* record, LaunchRecord* spare);
  /// Drops a reference to a launch that is not in flight; keeps the record as the spare one if it
  /// was the last reference. @pre launch_mutex is held
  void reuse(LaunchRecord* record);
  /// Waits until every earlier launch is done.
  void await_launches();
  /// Called by the thread that ends the process: waits for all launches, and prevents other threads
  /// from starting any (process_end.h).
  void await_last_launches();
  /// Waits for launches that have failed on some device. If other devices then wait forever, the
  /// client becomes wedged.
  void await_failed_launches();
  /// Returns the error of a launch that may wait forever on this device. It failed on another
  /// device and is not done on this one.
  Result<void> stuck_launch(const Device& device);
  /// One line for each launch in flight, for reports.
  std::string list_launches();

  /// Remembers that a launch has succeeded on all of its devices.
  void remember_success(std::uint64_t launch) {
    succeeded[launch % succeeded.size()].store(launch, std::memory_order_release);
  }
  /// Whether that is known. Older launches are forgotten.
  bool is_known_success(std::uint64_t launch) const {
    return succeeded[launch % succeeded.size()].load(std::memory_order_acquire) == launch;
  }

  void await_those(bool (*wanted)(LaunchRecord&));
  Result<void> add_devices_of_others(const ProcessDevices& run);

  Plugin plugin;
  const PJRT_Api* api;
  PJRT_Client* raw;
  std::shared_ptr<KeyValueStore> store;  // of the plugin's callbacks; released after the client
  std::atomic<long> references{0};
  std::string name;  // given, otherwise the platform
  std::string platform;
  std::string platform_version;
  int process_index = 0;
  QuirkSet quirks;
  LaunchRules rules;

  std::vector<std::unique_ptr<Device>> devices;  // fixed after initialize()
  std::vector<const Device*> addressable;
  std::unordered_map<int, const Device*> by_id;
  std::unordered_map<PJRT_Device*, const Device*> by_handle;

  std::mutex types_mutex;
  std::unordered_set<ArrayType> types;
  std::mutex device_lists_mutex;
  // By their hash.
  std::unordered_multimap<std::size_t, std::unique_ptr<const DeviceList>> device_lists;

  /// Orders launches whose devices may wait for each other. Held during the plugin's call, so that
  /// every device receives them in the same order. Locked before launch_mutex.
  std::mutex order_mutex;
  /// Never held during a call that may wait.
  std::mutex launch_mutex;
  std::condition_variable launch_ended;
  LaunchList in_flight;
  std::size_t entering = 0;           // launches whose plugin call has not returned
  std::size_t threads_that_wait = 0;  // for launch_ended
  std::size_t look_at = 64;           // when this many are in flight, drop those that are done
  std::unique_ptr<LaunchRecord> spare_launch;  // record of a launch that is over
  std::uint32_t launch_mark = 0;
  std::uint64_t launches = 0;  // the number of the last one
  // Launches that are known to have succeeded, by number: their results are ready. Otherwise,
  // a wait for 200 results of one launch on 8 devices would ask for 1,600 events.
  std::array<std::atomic<std::uint64_t>, 64> succeeded{};
  std::atomic<bool> wedged{false};
};

}  // namespace meshard::pjrt::internal
