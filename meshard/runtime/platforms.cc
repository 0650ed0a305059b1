// Tested in meshard/runtime/runtime_test.cc.
#include "meshard/runtime/platforms.h"

#include <pthread.h>

#include "meshard/base/environment.h"
#include "meshard/mesh/device_type.h"
#include "meshard/runtime/internal/across_processes/across_processes.h"
#include "meshard/runtime/internal/across_processes/together_processes.h"
#include "meshard/runtime/internal/launched_results.h"
#include "meshard/runtime/internal/make_client.h"
#include "meshard/runtime/internal/released_arrays.h"

namespace meshard {

class Platforms::Making {
 public:
  explicit Making(Platforms& platforms) : platforms_(platforms) {
    std::lock_guard lock(platforms_.mutex_);
    options_ = platforms_.options_;
    ++platforms_.making_;
  }
  ~Making() {
    std::lock_guard lock(platforms_.mutex_);
    --platforms_.making_;
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  const RuntimeOptions& options() const { return options_; }

 private:
  Platforms& platforms_;
  RuntimeOptions options_;
};

Platforms::Platforms() : launched_(std::make_unique<LaunchedResults>()) {}
Platforms::~Platforms() = default;

// What executes over the client's devices. Of several processes, CPU devices communicate by MPI,
// others by their plugin.
Result<std::unique_ptr<Fabric>> Platforms::connect(const pjrt::Client& client, bool is_default) {
  if (client.device_count() == client.addressable_devices().size())
    return std::make_unique<Fabric>(*this, client);
  Processes run = processes();
  if (client.platform() == "cpu" && is_default) {
    for (const auto& before : fabrics_) before->stop();
    MESHARD_ASSIGN_OR_RETURN(std::unique_ptr<Fabric> joined,
                             AcrossProcesses::start(*this, run, client));
    return joined;
  }
  if (run.size() > 1 && client.process_index() != run.rank())
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[runtime] this is process ", run.rank(), " of the run, but process ",
                     client.process_index(), " of platform ", client.name(),
                     ": start the processes in the order of the platform's"));
  std::unique_ptr<Fabric> joined = std::make_unique<TogetherProcesses>(*this, run, client);
  return joined;
}

Fabric& Platforms::fabric(const pjrt::Client& client) const {
  std::lock_guard lock(mutex_);
  for (const auto& fabric : fabrics_)
    if (fabric->client() == client) return *fabric;
  throw InternalError("[runtime] a client of other platforms");
}

Fabric* Platforms::find_fabric(const Mesh& mesh) const {
  const pjrt::Client* client = find_started(mesh);
  return client ? &fabric(*client) : nullptr;
}

Fabric* Platforms::default_fabric() const {
  const pjrt::Client* client = default_.client;
  return client ? &fabric(*client) : nullptr;
}

RuntimeOptions Platforms::options_now() {
  std::lock_guard lock(mutex_);
  return options_;
}

bool Platforms::any_runs() const {
  if (default_.client) return true;
  for (const auto& [type, platform] : further_)
    if (platform.client) return true;
  return false;
}

void Platforms::publish_default_names() {
  std::vector<std::string> names;
  if (std::string said = internal::default_platform(options_); !said.empty())
    names.push_back(std::move(said));
  if (const pjrt::Client* client = default_.client) {
    const std::string& says = client->platform();
    auto other = further_.find(says);
    bool taken = (other != further_.end() && other->second.client) ||
                 internal::is_further_platform(options_, says);
    if (!taken && says != client->name()) names.push_back(says);
    if (names.empty() || names[0] != client->name()) names.insert(names.begin(), client->name());
  }
  default_is_known_ = !names.empty();
  internal::set_default_device_types(std::move(names));
}

template <class Make>
const pjrt::Client& Platforms::started(Platform& platform, Make make, SourceLocation where) {
  if (const pjrt::Client* client = platform.client.load(std::memory_order_acquire)) return *client;
  std::lock_guard making(platform.making);
  if (const pjrt::Client* client = platform.client.load(std::memory_order_acquire)) return *client;
  Result<pjrt::Client> made = [&] {
    Making now(*this);
    return make(now.options());
  }();
  if (!made.ok()) throw made.error().at(where);
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { internal::is_forked_child = true; });
  std::lock_guard lock(mutex_);
  Result<std::unique_ptr<Fabric>> fabric = connect(*made, &platform == &default_);
  if (!fabric.ok()) throw fabric.error().at(where);
  const pjrt::Client& client = fabrics_.emplace_back(*std::move(fabric))->client();
  if (&platform != &default_) pjrt::name_platforms();
  platform.client.store(&client, std::memory_order_release);
  publish_default_names();
  return client;
}

bool Platforms::checks_host_data() const {
  {
    std::lock_guard lock(mutex_);
    if (options_.check_host_data) return *options_.check_host_data;
  }
  return environment_integer("MESHARD_CHECK_HOST_DATA", 0, 0, 1).value() != 0;
}

// Whether a device type refers to the default platform.
bool Platforms::is_default(std::string_view type, SourceLocation where) {
  if (type.empty()) return true;
  RuntimeOptions options = options_now();
  std::string said = internal::default_platform(options);
  if (type == said) return true;
  if (internal::is_further_platform(options, type)) return false;
  const pjrt::Client* known = default_.client;
  // Only an explicitly specified plugin can be for any platform; one that is found by a platform's
  // name is assumed to be for that platform.
  if (!known && internal::names_default_plugin(options)) known = &client(where);
  return known && known->platform() == type;
}

Result<void> Platforms::configure(RuntimeOptions options) {
  MESHARD_RETURN_IF_ERROR(internal::check_runtime_options(options));
  std::lock_guard lock(mutex_);
  if (any_runs() || making_ > 0)
    return Error(ErrorCode::kFailedPrecondition,
                 "[runtime] the runtime is already running: configure it before the first tensor "
                 "is computed");
  if (options.log) set_log_level(*options.log);
  options_ = std::move(options);
  default_is_known_ = false;
  internal::set_default_device_types({});
  return {};
}

const pjrt::Client& Platforms::client(SourceLocation where) {
  check_not_forked(where);
  return started(default_, internal::make_default_client, where);
}

const pjrt::Client& Platforms::client(std::string_view device_type, SourceLocation where) {
  check_not_forked(where);
  Platform* platform = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto known = further_.find(device_type);
    if (known != further_.end() && known->second.client) platform = &known->second;
  }
  if (!platform && is_default(device_type, where)) return client(where);
  if (!platform) {
    std::lock_guard lock(mutex_);
    platform = &further_[std::string(device_type)];
  }
  return started(
      *platform,
      [&](const RuntimeOptions& options) {
        return internal::make_further_client(options, std::string(device_type));
      },
      where);
}

const pjrt::Client& Platforms::client(const Mesh& mesh, SourceLocation where) {
  return mesh.device_type().empty() ? client(where) : client(mesh.device_type(), where);
}

std::vector<const pjrt::Client*> Platforms::started() const {
  std::vector<const pjrt::Client*> clients;
  if (const pjrt::Client* client = default_.client) clients.push_back(client);
  std::lock_guard lock(mutex_);
  for (const auto& [type, platform] : further_)
    if (const pjrt::Client* client = platform.client) clients.push_back(client);
  return clients;
}

const pjrt::Client* Platforms::find_started(const Mesh& mesh) const {
  const std::string& type = mesh.device_type();
  if (type.empty()) return default_.client;
  std::vector<const pjrt::Client*> all = started();
  for (const pjrt::Client* client : all)
    if (client->name() == type) return client;
  for (const pjrt::Client* client : all)
    if (client->platform() == type) return client;
  return nullptr;
}

void Platforms::know_default(SourceLocation where) {
  if (default_is_known_.load(std::memory_order_acquire)) [[likely]]
    return;
  {
    std::lock_guard lock(mutex_);
    publish_default_names();
  }
  if (!default_is_known_) (void)client(where);
}

void Platforms::restart() {
  check_not_forked({});
  std::lock_guard lock(mutex_);
  if (!any_runs()) return;
  default_.client = nullptr;
  for (auto& [type, platform] : further_) platform.client = nullptr;
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

void Platforms::wait_for_launches() const {
  internal::ReleasedArrays::of_thread().destroy();
  for (const pjrt::Client* client : started()) client->await_launches();
}

void Platforms::handle_failure() const {
  for (const pjrt::Client* client : started()) client->await_failed_launches();
  launched_->forget_failed();
}

}  // namespace meshard
