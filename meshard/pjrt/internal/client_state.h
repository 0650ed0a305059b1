// The state that everything of one client shares.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/pjrt/array_type.h"
#include "meshard/pjrt/device.h"
#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/launch_rules.h"
#include "meshard/pjrt/plugin.h"

namespace meshard::pjrt::internal {

/// One launch: its events, shared by the client's list of launches under way and the user's handle.
struct LaunchRecord {
  const PJRT_Api* api = nullptr;
  int id = 0;
  std::atomic<int> references{1};
  std::atomic<bool> done{false};
  InlineVector<PJRT_Event*, 8> events;

  /// Waits for every event; the first error, if any.
  Result<void> await();
};

struct ClientState {
  ClientState(Plugin from, PJRT_Client* client) : plugin(from), api(from.api()), raw(client) {}
  ClientState(const ClientState&) = delete;
  ClientState& operator=(const ClientState&) = delete;
  ~ClientState();

  /// Reads platform and devices.
  Result<void> initialise();
  /// The one object that stands for `type` in this client.
  const ArrayType* intern(const ArrayType& type);
  const Device* find(PJRT_Device* device) const;

  Plugin plugin;
  const PJRT_Api* api;
  PJRT_Client* raw;
  std::atomic<long> references{0};
  std::string platform;
  std::string platform_version;
  int process_index = 0;
  LaunchRules rules;

  std::vector<std::unique_ptr<Device>> devices;  // fixed after initialise()
  std::vector<const Device*> addressable;
  std::unordered_map<int, const Device*> by_id;
  std::unordered_map<PJRT_Device*, const Device*> by_handle;

  std::mutex types_mutex;
  std::unordered_set<ArrayType> types;

  /// Held while arguments are checked and claimed; during the plugin's call too if
  /// rules.one_launcher.
  std::mutex launch_mutex;
  std::deque<LaunchRecord*> in_flight;         // oldest first, never more than rules.max_in_flight
  std::unique_ptr<LaunchRecord> spare_launch;  // of a launch that was done at once
  std::uint32_t launch_mark = 0;
  bool wedged = false;
};

}  // namespace meshard::pjrt::internal
