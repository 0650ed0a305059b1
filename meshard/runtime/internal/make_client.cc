// Tested in tests/platforms/platforms_choice_test.cc.
#include "meshard/runtime/internal/make_client.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "meshard/base/environment.h"
#include "meshard/base/fingerprint.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/plugin.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/pjrt/run_rules.h"
#include "meshard/processes/processes.h"
#include "meshard/runtime/internal/across_processes/shared_fabric.h"

namespace meshard::internal {
namespace {

constexpr int kDefaultCpuDevices = 8;

std::string variable_of(std::string_view type) {
  std::string name = "MESHARD_PLUGIN_";
  for (char c : type) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// Empty if it is not set, or in a setuid program, which must not load a plugin that the caller
// chose.
std::string plugin_in_environment(const std::string& variable) {
  const char* path = ::secure_getenv(variable.c_str());
  return path ? path : "";
}

Result<int> cpu_device_count(int said) {
  if (said != 0) return said;
  MESHARD_ASSIGN_OR_RETURN(std::int64_t count,
                           environment_integer("MESHARD_CPU_DEVICES", kDefaultCpuDevices, 1,
                                               std::numeric_limits<int>::max()));
  return static_cast<int>(count);
}

Error no_file(const std::string& path, std::string_view variable) {
  return Error(ErrorCode::kNotFound,
               cat("[runtime] ", variable, " names the file ", path,
                   ", which does not exist; unset it to use an installed plugin"));
}

Result<std::string> existing_file(const std::string& path, std::string_view variable) {
  if (::access(path.c_str(), F_OK) != 0) return no_file(path, variable);
  return path;
}

// If MESHARD_PLUGIN names a plugin, no other may replace it silently.
Result<std::string> find_default_plugin(const std::string& platform) {
  pjrt::PluginSearch search = pjrt::find_plugins();
  auto named = [](const auto& each) { return each.reason == "MESHARD_PLUGIN"; };
  auto asked = std::find_if(search.places.begin(), search.places.end(), named);
  if (asked != search.places.end() && std::none_of(search.found.begin(), search.found.end(), named))
    return no_file(asked->path, "MESHARD_PLUGIN");
  std::string variable = variable_of(platform);
  if (std::string path = plugin_in_environment(variable);
      asked == search.places.end() && !path.empty())
    return existing_file(path, variable);
  return search.first(platform);
}

Result<std::string> find_further_plugin(const std::string& type) {
  std::string variable = variable_of(type);
  if (std::string path = plugin_in_environment(variable); !path.empty())
    return existing_file(path, variable);
  pjrt::PluginSearch search = pjrt::find_plugins();
  // A file in MESHARD_PLUGIN may be for another platform than the default one, if its name says so.
  for (const pjrt::FoundPlugin& each : search.found)
    if (each.platform == type) return each.path;
  std::string looked;
  for (const pjrt::SearchedPlace& place : search.places) looked += cat("\n  ", place.path);
  bool fetched = type == "cpu" || type == "cuda" || type == "tpu";
  return Error(ErrorCode::kNotFound,
               cat("[runtime] no plugin for device type ", type,
                   ", which is not the default platform, was found; ",
                   fetched ? cat("`meshard fetch ", type, "` downloads one, ") : "",
                   "RuntimeOptions::platforms or ", variable,
                   "=/path/to/plugin.so specifies one. Searched", looked));
}

// The CPU devices of all processes, if there are several and they can communicate. The CPU plugin
// itself knows only those of its process.
Result<std::optional<pjrt::ProcessDevices>> devices_of_run() {
  Processes run = processes();
  if (const std::string& why = run.why_no_communicator(); !why.empty())
    return Error(
        ErrorCode::kNotFound,
        cat("[runtime] programs on the CPU devices of ", run.size(),
            " processes need collectives, but ", why,
            "\n  start the processes by MPI, install Gloo, or set MESHARD_COLLECTIVES=none "
            "for processes that use their own devices only"));
  if (!run.communicator()) return std::optional<pjrt::ProcessDevices>();
  pjrt::ProcessDevices devices{.process = run.rank(), .counts = {}};
  for (const ProcessInfo& member : run.members()) devices.counts.push_back(member.local_devices);
  return std::optional(std::move(devices));
}

Result<pjrt::Client> start_of_run(const std::string& path, std::vector<pjrt::NamedValue> options,
                                  const pjrt::ProcessDevices& run, std::string_view name) {
  MESHARD_RETURN_IF_ERROR(check_environment());
  MESHARD_ASSIGN_OR_RETURN(pjrt::Plugin plugin, pjrt::Plugin::load(path));
  int count = run.counts[static_cast<std::size_t>(run.process)];
  std::erase_if(options, [](const auto& option) { return option.name == "cpu_device_count"; });
  options.push_back({"cpu_device_count", std::int64_t{count}});
  return pjrt::Client::create(plugin, options, {}, name, &run);
}

pjrt::RunMembers members_of(const Processes& run) {
  pjrt::RunMembers members{.rank = run.rank(), .hosts = {}, .local_devices = {}};
  for (const ProcessInfo& member : run.members()) {
    members.hosts.push_back(member.host);
    members.local_devices.push_back(member.local_devices);
  }
  return members;
}

using std::chrono::milliseconds;

// Keys with lists of thousands of devices are longer than the store allows.
constexpr std::size_t kLongestKey = 1000;

// The number of earlier clients of a platform.
int next_client_of(std::string_view platform) {
  static std::mutex mutex;
  static auto* clients = new std::map<std::string, int, std::less<>>;
  std::lock_guard lock(mutex);
  return (*clients)[std::string(platform)]++;
}

// The run's store, as plugins use it to find their counterparts in other processes.
class RunStore final : public pjrt::KeyValueStore {
 public:
  RunStore(Processes run, std::string_view platform, milliseconds most)
      : run_(run),
        platform_(platform),
        prefix_(cat("meshard/client/", platform, "/", next_client_of(platform), "/")),
        most_(most) {}

  // Tells the others that this process creates its client.
  Result<void> begin() { return run_.store().put(begin_key(run_.rank()), "begun"); }

  Result<void> put(std::string_view key, std::string_view value) override {
    return run_.store().put(full(key), value);
  }

  Result<std::string> get(std::string_view key, milliseconds limit) override {
    if (limit < milliseconds(0) || limit > most_) limit = most_;
    Result<std::string> got = run_.store().get(full(key), limit);
    if (got.ok() || got.error().code() != ErrorCode::kDeadlineExceeded) return got;
    return Error(ErrorCode::kDeadlineExceeded,
                 cat("[client] no process has stored \"", key.substr(0, kLongestKey), "\" within ",
                     static_cast<double>(limit.count()) / 1000, " s; ", absent_text()));
  }

  Result<std::optional<std::string>> try_get(std::string_view key) override {
    return run_.store().try_get(full(key));
  }

 private:
  std::string full(std::string_view key) const {
    if (key.size() <= kLongestKey) return cat(prefix_, "key/", key);
    return cat(prefix_, "long/", key.substr(0, kLongestKey), "/", fingerprint(key));
  }

  std::string begin_key(int rank) const { return cat(prefix_, "begun/", rank); }

  std::string absent_text() {
    std::string names;
    for (const ProcessInfo& member : run_.members()) {
      Result<std::optional<std::string>> begun = run_.store().try_get(begin_key(member.rank));
      if (begun.ok() && !*begun) append(names, cat(names.empty() ? "" : ", ", member));
    }
    return names.empty()
               ? cat("all processes have begun to create their client of ", platform_)
               : cat("these have not begun to create their client of ", platform_, ": ", names);
  }

  Processes run_;
  std::string platform_, prefix_;
  milliseconds most_;
};

// The store for the next client of `platform` in this process. Keys of different platforms, and of
// clients before and after a restart of the runtime, do not meet. The plugin waits for a key as
// long as it likes, but at most MESHARD_PROCESS_WAIT_SECONDS; the error then names the processes
// that have not begun to create their client.
// @error invalid argument for an invalid MESHARD_PROCESS_WAIT_SECONDS; the store's
Result<std::shared_ptr<pjrt::KeyValueStore>> store_for_client(Processes run,
                                                              std::string_view platform) {
  MESHARD_ASSIGN_OR_RETURN(milliseconds most, wait_for_processes());
  auto store = std::make_shared<RunStore>(run, platform, most);
  MESHARD_RETURN_IF_ERROR(store->begin());
  return std::shared_ptr<pjrt::KeyValueStore>(std::move(store));
}

// Tells a plugin that knows several processes of the others.
Result<pjrt::Client> start_with_others(const std::string& path,
                                       std::vector<pjrt::NamedValue> options,
                                       const std::string& platform, std::string_view name) {
  const pjrt::RunMembers members = members_of(processes());
  for (const auto& [variable, value] : pjrt::variables_for_run(platform, members))
    ::setenv(variable.c_str(), value.c_str(), /*overwrite=*/0);
  MESHARD_ASSIGN_OR_RETURN(pjrt::Plugin plugin, pjrt::Plugin::load(path));
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  for (pjrt::NamedValue& option :
       pjrt::options_for_run(platform, members, options, visible && *visible))
    options.push_back(std::move(option));
  processes().entering(cat("creation of the client of platform ", platform));
  MESHARD_ASSIGN_OR_RETURN(std::shared_ptr<pjrt::KeyValueStore> store,
                           store_for_client(processes(), platform));
  Result<pjrt::Client> client = pjrt::Client::create(plugin, options, {}, name, nullptr, store);
  processes().entering("");
  return client;
}

// `devices`: the requested number; 0: not specified. `platform`: the plugin's, if it is known.
Result<pjrt::Client> start(const std::string& path, std::vector<pjrt::NamedValue> options,
                           const std::string& platform, int devices, std::string_view name) {
  MESHARD_RETURN_IF_ERROR(check_environment());
  const bool cpu = platform == "cpu";
  if (!cpu && processes().size() > 1)
    return start_with_others(path, std::move(options), platform, name);
  MESHARD_ASSIGN_OR_RETURN(pjrt::Plugin plugin, pjrt::Plugin::load(path));
  if (cpu && !pjrt::find_value<std::int64_t>(options, "cpu_device_count")) {
    MESHARD_ASSIGN_OR_RETURN(int count, cpu_device_count(devices));
    options.push_back({"cpu_device_count", std::int64_t{count}});
  }
  return pjrt::Client::create(plugin, options, {}, name);
}

const PlatformOptions* options_of(const RuntimeOptions& options, std::string_view type) {
  for (const PlatformOptions& each : options.platforms)
    if (each.device_type == type) return &each;
  return nullptr;
}

}  // namespace

bool names_default_plugin(const RuntimeOptions& options) {
  return !options.plugin.empty() || !plugin_in_environment("MESHARD_PLUGIN").empty();
}

std::string default_platform(const RuntimeOptions& options) {
  if (!options.platform.empty()) return options.platform;
  if (const char* text = std::getenv("MESHARD_PLATFORM")) return text;
  return names_default_plugin(options) ? "" : "cpu";
}

bool is_further_platform(const RuntimeOptions& options, std::string_view type) {
  if (type.empty() || type == default_platform(options)) return false;
  return options_of(options, type) || !plugin_in_environment(variable_of(type)).empty();
}

Result<void> check_runtime_options(const RuntimeOptions& options) {
  std::string standard = default_platform(options);
  for (const PlatformOptions& each : options.platforms) {
    const std::string& type = each.device_type;
    auto invalid = [&](const auto&... why) {
      return Error(ErrorCode::kInvalidArgument,
                   cat("[runtime] invalid additional platform \"", type, "\": ", why...));
    };
    if (type.empty()) return invalid("give it a device type, such as cuda");
    for (char c : type)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
        return invalid("use letters, digits and _");
    if (type == standard)
      return invalid("it is the default platform; RuntimeOptions::plugin names its plugin");
    if (options_of(options, type) != &each) return invalid("it is listed twice");
  }
  return {};
}

Result<pjrt::Client> make_default_client(const RuntimeOptions& options) {
  std::string platform = default_platform(options);
  if (platform.empty()) platform = "cpu";
  std::string path = options.plugin;
  if (path.empty()) {
    MESHARD_ASSIGN_OR_RETURN(path, find_default_plugin(platform));
  }
  // A plugin that is named without its platform is taken for one of CPUs, unless its file's name
  // says otherwise: other plugins refuse the option cpu_device_count.
  if (default_platform(options).empty())
    if (std::string guess = pjrt::guess_platform(path); !guess.empty()) platform = guess;
  if (platform == "cpu") {
    MESHARD_ASSIGN_OR_RETURN(std::optional<pjrt::ProcessDevices> run, devices_of_run());
    if (run) return start_of_run(path, options.client_options, *run, default_platform(options));
  }
  return start(path, options.client_options, platform, options.cpu_devices,
               default_platform(options));
}

Result<pjrt::Client> make_further_client(const RuntimeOptions& options, const std::string& type) {
  const PlatformOptions* said = options_of(options, type);
  PlatformOptions own = said ? *said : PlatformOptions{};
  if (own.plugin.empty()) {
    MESHARD_ASSIGN_OR_RETURN(own.plugin, find_further_plugin(type));
  }
  bool cpu = type == "cpu" || own.cpu_devices != 0 || pjrt::guess_platform(own.plugin) == "cpu";
  int devices = own.cpu_devices != 0 ? own.cpu_devices : options.cpu_devices;
  std::string platform = cpu ? "cpu" : type;
  Result<pjrt::Client> client = start(own.plugin, own.client_options, platform, devices, type);
  if (client.ok()) return client;
  return client.error().with_note(
      cat("while starting platform ", type, " with the plugin ", own.plugin));
}

}  // namespace meshard::internal
