#include "meshard/runtime/runtime.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>

#include "meshard/base/environment.h"
#include "meshard/pjrt/plugin.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/runtime/lazy_evaluator.h"

namespace meshard {
namespace {

constexpr int kDefaultCpuDevices = 8;

std::mutex client_mutex;
std::optional<RuntimeOptions> configured;  // under client_mutex
// Set and reset under client_mutex. Clients stay where they are: references to them are out, and to
// destroy one that is wedged would be to wait for its launches.
std::atomic<const pjrt::Client*> the_client{nullptr};

Result<int> cpu_device_count(const RuntimeOptions& options) {
  if (options.cpu_devices != 0) return options.cpu_devices;
  MESHARD_ASSIGN_OR_RETURN(std::int64_t count,
                           environment_integer("MESHARD_CPU_DEVICES", kDefaultCpuDevices, 1,
                                               std::numeric_limits<int>::max()));
  return static_cast<int>(count);
}

// What MESHARD_PLUGIN names is meant: another plugin in its place would be a surprise.
Result<std::string> find_plugin(const std::string& platform) {
  pjrt::PluginSearch search = pjrt::find_plugins();
  auto named = [](const auto& each) { return each.reason == "MESHARD_PLUGIN"; };
  auto asked = std::find_if(search.places.begin(), search.places.end(), named);
  if (asked != search.places.end() && std::none_of(search.found.begin(), search.found.end(), named))
    return Error(ErrorCode::kNotFound,
                 cat("[runtime] there is no file ", asked->path,
                     ", which MESHARD_PLUGIN names; unset it to use a plugin that is installed"));
  return search.first(platform);
}

Result<pjrt::Client> make_client(const RuntimeOptions& options) {
  std::string platform = options.platform;
  if (platform.empty()) {
    const char* text = std::getenv("MESHARD_PLATFORM");
    platform = text ? text : "cpu";
  }
  std::string path = options.plugin;
  if (path.empty()) {
    MESHARD_ASSIGN_OR_RETURN(path, find_plugin(platform));
  }
  MESHARD_ASSIGN_OR_RETURN(pjrt::Plugin plugin, pjrt::Plugin::load(path));
  std::vector<pjrt::NamedValue> client_options = options.client_options;
  bool cpu = platform == "cpu";
  if (cpu && !pjrt::find_value<std::int64_t>(client_options, "cpu_device_count")) {
    MESHARD_ASSIGN_OR_RETURN(int devices, cpu_device_count(options));
    client_options.push_back({"cpu_device_count", std::int64_t{devices}});
  }
  return pjrt::Client::create(std::move(plugin), client_options);
}

}  // namespace

namespace internal {

std::atomic<std::uint32_t> runtime_generation{0};
std::atomic<bool> is_forked_child{false};

void fail_in_forked_child(SourceLocation where) {
  throw Error(ErrorCode::kFailedPrecondition,
              "[runtime] this process was forked after the runtime began: the plugin's threads are "
              "not here. Fork before the first tensor is computed or placed, or start another "
              "program (exec)",
              where);
}

}  // namespace internal

Result<void> configure_runtime(RuntimeOptions options) {
  std::lock_guard lock(client_mutex);
  if (the_client)
    return Error(
        ErrorCode::kFailedPrecondition,
        "[runtime] the runtime runs already: configure it before the first tensor is computed");
  configured = std::move(options);
  return {};
}

const pjrt::Client& runtime_client(SourceLocation where) {
  check_not_forked(where);
  if (const pjrt::Client* made = the_client.load(std::memory_order_acquire)) return *made;
  std::lock_guard lock(client_mutex);
  if (const pjrt::Client* made = the_client.load(std::memory_order_acquire)) return *made;
  Result<pjrt::Client> made = make_client(configured.value_or(RuntimeOptions{}));
  if (!made.ok()) throw made.error().at(where);
  static auto* clients = new std::deque<pjrt::Client>;
  const pjrt::Client& client = clients->emplace_back(*std::move(made));
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { internal::is_forked_child = true; });
  the_client.store(&client, std::memory_order_release);
  return client;
}

void restart_runtime() {
  check_not_forked({});
  std::lock_guard lock(client_mutex);
  if (!the_client.exchange(nullptr, std::memory_order_acq_rel)) return;
  internal::runtime_generation.fetch_add(1, std::memory_order_acq_rel);
}

const pjrt::Client* started_client() { return the_client.load(std::memory_order_acquire); }

bool install_runtime() {
  install_evaluator([]() -> Evaluator& {
    // Never destroyed: tensors with static storage may outlive every other static object.
    static LazyEvaluator* evaluator = new LazyEvaluator();
    return *evaluator;
  });
  return true;
}

}  // namespace meshard
