// The state that everything of one client shares.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/base/source_location.h"
#include "meshard/pjrt/array_type.h"
#include "meshard/pjrt/device.h"
#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/launch_rules.h"
#include "meshard/pjrt/plugin.h"

namespace meshard::pjrt::internal {

struct ClientState;

/// What all launches of one program have in common.
struct LaunchSite {
  std::string name;
  std::vector<const Device*> devices;
};

/// One launch: its events, shared by the client's list of launches under way and the user's handle.
struct LaunchRecord {
  const PJRT_Api* api = nullptr;
  ClientState* client = nullptr;  // alive as long as the record is in its list or in a handle
  int id = 0;
  std::atomic<int> references{1};
  std::atomic<bool> done{false};
  /// Of devices [first, first + size) of the site. Null: not made yet.
  InlineVector<PJRT_Event*, 8> events;
  std::size_t first = 0;
  std::shared_ptr<const LaunchSite> site;
  SourceLocation where;
  std::chrono::steady_clock::time_point begun;

  std::mutex mutex;
  std::optional<Result<void>> outcome;  // once it was awaited; under mutex

  /// Waits for every event; the first error, if any.
  Result<void> await();
  /// Whether a device is through with an error; does not wait.
  bool has_failed();
  /// Whether device number `k` of the launch, or every one, is through; does not wait.
  bool is_through(std::size_t k) const;
  bool is_through() const;
  /// `"train" on devices 0,1, launched at train.cc:42`
  std::string to_string() const;
};

struct ClientState {
  ClientState(Plugin from, PJRT_Client* client, std::string_view called)
      : plugin(from), api(from.api()), raw(client), name(called) {}
  ClientState(const ClientState&) = delete;
  ClientState& operator=(const ClientState&) = delete;
  ~ClientState();

  /// Reads platform and devices.
  Result<void> initialize();
  /// The one object that stands for `type` in this client.
  const ArrayType* intern(const ArrayType& type);
  const Device* find(PJRT_Device* device) const;

  /// Waits until one more launch may be under way, and counts it as entering.
  void begin_launch();
  /// Ends what begin_launch began. `record`: the launch is under way; null: it is not.
  void end_launch(LaunchRecord* record);
  /// Waits until every launch that was made before is through.
  void await_launches() {
    await_those([](LaunchRecord&) { return true; });
  }
  /// The process ends in this thread: the same for all launches, after which other threads start
  /// none (process_end.h).
  void await_last_launches();
  /// The same for launches that have failed on some device: those whose partners wait for ever end
  /// with the client wedged.
  void await_failed_launches();
  /// An error if a launch is under way that failed on another device and is not through on this
  /// one, where it may wait for its partner for ever.
  Result<void> stuck_launch(const Device& device);
  /// A line for each launch under way, for reports.
  std::string list_launches();

  void await_those(bool (*wanted)(LaunchRecord&));

  Plugin plugin;
  const PJRT_Api* api;
  PJRT_Client* raw;
  std::atomic<long> references{0};
  std::string name;  // given, else the platform
  std::string platform;
  std::string platform_version;
  int process_index = 0;
  LaunchRules rules;

  std::vector<std::unique_ptr<Device>> devices;  // fixed after initialize()
  std::vector<const Device*> addressable;
  std::unordered_map<int, const Device*> by_id;
  std::unordered_map<PJRT_Device*, const Device*> by_handle;

  std::mutex types_mutex;
  std::unordered_set<ArrayType> types;

  /// Held during the plugin's call by launches whose parts meet: every device gets them in one
  /// order. Taken before launch_mutex.
  std::mutex order_mutex;
  /// Never held during a call that may wait.
  std::mutex launch_mutex;
  std::condition_variable launch_ended;
  std::deque<LaunchRecord*> in_flight;  // oldest first
  std::size_t entering = 0;             // launches whose call of the plugin has not returned
  std::size_t look_at = 64;             // so many in flight: those that are through are dropped
  std::unique_ptr<LaunchRecord> spare_launch;  // of a launch that was done at once
  std::uint32_t launch_mark = 0;
  std::atomic<bool> wedged{false};
};

}  // namespace meshard::pjrt::internal
