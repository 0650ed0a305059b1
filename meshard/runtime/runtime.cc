#include "meshard/runtime/runtime.h"

#include <pthread.h>

#include <deque>
#include <map>
#include <mutex>

#include "meshard/mesh/device_type.h"
#include "meshard/runtime/lazy_evaluator.h"
#include "meshard/runtime/make_client.h"

namespace meshard {
namespace {

// A platform of the process and its client.
struct Platform {
  std::mutex making;  // locked before registry().mutex
  // Clients are never moved or destroyed: references to them exist, and destroying a wedged one
  // would wait for its launches.
  std::atomic<const pjrt::Client*> client{nullptr};
};

struct Registry {
  std::mutex mutex;  // never held during a call of a plugin
  RuntimeOptions options;
  int making = 0;  // clients that are being made with `options`
  std::map<std::string, Platform, std::less<>> further;
  std::deque<pjrt::Client> clients;  // including replaced ones
};

constinit Platform the_default;
constinit std::atomic<bool> default_is_known{false};

// Never destroyed: clients are in use when the process ends.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

RuntimeOptions options_now() {
  std::lock_guard lock(registry().mutex);
  return registry().options;
}

// A copy of the options; while it exists, the options cannot be changed.
class Making {
 public:
  Making() {
    std::lock_guard lock(registry().mutex);
    options_ = registry().options;
    ++registry().making;
  }
  ~Making() {
    std::lock_guard lock(registry().mutex);
    --registry().making;
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  const RuntimeOptions& options() const { return options_; }

 private:
  RuntimeOptions options_;
};

// Under the registry's mutex.
bool any_runs() {
  if (the_default.client) return true;
  for (const auto& [type, platform] : registry().further)
    if (platform.client) return true;
  return false;
}

// Under the registry's mutex.
void publish_default_names() {
  std::vector<std::string> names;
  if (std::string said = internal::default_platform(registry().options); !said.empty())
    names.push_back(std::move(said));
  if (const pjrt::Client* client = the_default.client) {
    const std::string& says = client->platform();
    auto other = registry().further.find(says);
    bool taken = (other != registry().further.end() && other->second.client) ||
                 internal::is_further_platform(registry().options, says);
    if (!taken && says != client->name()) names.push_back(says);
    if (names.empty() || names[0] != client->name()) names.insert(names.begin(), client->name());
  }
  default_is_known = !names.empty();
  internal::set_default_device_types(std::move(names));
}

template <class Make>
const pjrt::Client& started(Platform& platform, Make make, SourceLocation where) {
  if (const pjrt::Client* client = platform.client.load(std::memory_order_acquire)) return *client;
  std::lock_guard making(platform.making);
  if (const pjrt::Client* client = platform.client.load(std::memory_order_acquire)) return *client;
  Result<pjrt::Client> made = [&] {
    Making now;
    return make(now.options());
  }();
  if (!made.ok()) throw made.error().at(where);
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { internal::is_forked_child = true; });
  std::lock_guard lock(registry().mutex);
  const pjrt::Client& client = registry().clients.emplace_back(*std::move(made));
  if (&platform != &the_default) pjrt::name_platforms();
  platform.client.store(&client, std::memory_order_release);
  publish_default_names();
  return client;
}

// Whether a device type refers to the default platform.
bool is_default(std::string_view type, SourceLocation where) {
  if (type.empty()) return true;
  RuntimeOptions options = options_now();
  std::string said = internal::default_platform(options);
  if (type == said) return true;
  if (internal::is_further_platform(options, type)) return false;
  const pjrt::Client* client = the_default.client;
  // Only an explicitly specified plugin can be for any platform; one that is found by a platform's
  // name is assumed to be for that platform.
  if (!client && internal::names_default_plugin(options)) client = &runtime_client(where);
  return client && client->platform() == type;
}

}  // namespace

namespace internal {

std::atomic<std::uint32_t> runtime_generation{0};
std::atomic<bool> is_forked_child{false};

void fail_in_forked_child(SourceLocation where) {
  throw Error(
      ErrorCode::kFailedPrecondition,
      "[runtime] this process was forked after the runtime started, and the plugin's threads "
      "do not exist in it. Fork before the first tensor is computed or placed, or call "
      "exec after the fork",
      where);
}

void know_default_platform(SourceLocation where) {
  if (default_is_known.load(std::memory_order_acquire)) [[likely]]
    return;
  {
    std::lock_guard lock(registry().mutex);
    publish_default_names();
  }
  if (!default_is_known) (void)runtime_client(where);
}

}  // namespace internal

Result<void> configure_runtime(RuntimeOptions options) {
  MESHARD_RETURN_IF_ERROR(internal::check_runtime_options(options));
  std::lock_guard lock(registry().mutex);
  if (any_runs() || registry().making > 0)
    return Error(ErrorCode::kFailedPrecondition,
                 "[runtime] the runtime is already running: configure it before the first tensor "
                 "is computed");
  if (options.log) set_log_level(*options.log);
  registry().options = std::move(options);
  default_is_known = false;
  internal::set_default_device_types({});
  return {};
}

const pjrt::Client& runtime_client(SourceLocation where) {
  check_not_forked(where);
  return started(the_default, internal::make_default_client, where);
}

const pjrt::Client& runtime_client(std::string_view device_type, SourceLocation where) {
  check_not_forked(where);
  Platform* platform = nullptr;
  {
    std::lock_guard lock(registry().mutex);
    auto known = registry().further.find(device_type);
    if (known != registry().further.end() && known->second.client) platform = &known->second;
  }
  if (!platform && is_default(device_type, where)) return runtime_client(where);
  if (!platform) {
    std::lock_guard lock(registry().mutex);
    platform = &registry().further[std::string(device_type)];
  }
  return started(
      *platform,
      [&](const RuntimeOptions& options) {
        return internal::make_further_client(options, std::string(device_type));
      },
      where);
}

const pjrt::Client& runtime_client(const Mesh& mesh, SourceLocation where) {
  return mesh.device_type().empty() ? runtime_client(where)
                                    : runtime_client(mesh.device_type(), where);
}

void restart_runtime() {
  check_not_forked({});
  std::lock_guard lock(registry().mutex);
  if (!any_runs()) return;
  the_default.client = nullptr;
  for (auto& [type, platform] : registry().further) platform.client = nullptr;
  internal::runtime_generation.fetch_add(1, std::memory_order_acq_rel);
}

std::vector<const pjrt::Client*> started_clients() {
  std::vector<const pjrt::Client*> clients;
  if (const pjrt::Client* client = the_default.client) clients.push_back(client);
  std::lock_guard lock(registry().mutex);
  for (const auto& [type, platform] : registry().further)
    if (const pjrt::Client* client = platform.client) clients.push_back(client);
  return clients;
}

bool install_runtime() {
  install_evaluator([]() -> Evaluator& {
    // Never destroyed: tensors with static storage may outlive every other static object.
    static LazyEvaluator* evaluator = new LazyEvaluator();
    return *evaluator;
  });
  return true;
}

}  // namespace meshard
