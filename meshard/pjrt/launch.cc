// Makes a launch: checks it, enters the one order of all devices, and calls the plugin.
// Tested in tests/plugin/launches_test.cc.
#include "meshard/pjrt/launch.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "meshard/base/thread_instance.h"
#include "meshard/pjrt/internal/await.h"
#include "meshard/pjrt/internal/client_state.h"
#include "meshard/pjrt/internal/launch_call.h"
#include "meshard/pjrt/internal/launch_helper.h"
#include "meshard/pjrt/internal/released_buffers.h"

namespace meshard::pjrt {

using internal::ClientState;
using internal::LaunchRecord;

namespace {

// Launching 8 parts with fewer arguments and results takes about as long as waking the helper.
constexpr std::size_t kLeastBuffersToShare = 16;

/// Arrays that the plugin reads and fills during a call; reused by the next call.
struct Scratch {
  std::vector<PJRT_Buffer*> arguments;
  std::vector<PJRT_Buffer*> outputs;
  std::vector<PJRT_Buffer* const*> argument_lists;
  std::vector<PJRT_Buffer**> output_lists;
};

Scratch& scratch() { return meshard::internal::thread_instance<Scratch>(); }

/// The time to a few milliseconds. Reports print it in seconds, and reading the precise clock takes
/// 0.1 us, which is 5 % of a launch on one device.
std::chrono::steady_clock::time_point coarse_now() {
#ifdef CLOCK_MONOTONIC_COARSE
  timespec now{};
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0)
    return std::chrono::steady_clock::time_point(std::chrono::seconds(now.tv_sec) +
                                                 std::chrono::nanoseconds(now.tv_nsec));
#endif
  return std::chrono::steady_clock::now();
}

}  // namespace

const Device& LoadedExecutable::device(const Call& call, std::size_t k) const {
  return (*devices_)[call.first + k];
}

Result<void> LoadedExecutable::check(const Call& call) const {
  std::size_t per_device = parameter_types_.size();
  MESHARD_RETURN_IF_ERROR(check_sizes(call));
  if (call.device_by_device && !can_run_device_by_device())
    return Error(
        ErrorCode::kFailedPrecondition,
        cat("[", call.place, "] the parts of this program wait for each other, and the ",
            client_->platform, " plugin ",
            client_->rules.parts_start_together ? "starts no part before all parts are launched"
                                                : "may run one device's part in the calling thread",
            ": use execute"));
  if (client_->wedged && call.count > 1)
    return Error(
        ErrorCode::kFailedPrecondition,
        cat("[", call.place,
            "] an earlier launch of this client failed inside the plugin, which can no longer "
            "complete launches on several devices: create a new client (restart_runtime())"));
  std::int64_t last = -1;
  for (std::int64_t kept : call.options.keep) {
    if (kept <= last || kept >= static_cast<std::int64_t>(per_device))
      return Error(ErrorCode::kInvalidArgument,
                   cat("[", call.place, "] keep must list parameter numbers below ", per_device,
                       " in ascending order, got ", kept, " after ", last));
    last = kept;
  }
  return call.has_lists ? take_lists(call) : call.has_views ? take_views(call) : take_buffers(call);
}

namespace {

PJRT_ExecuteOptions plugin_options(int id, std::span<const std::int64_t> keep) {
  PJRT_ExecuteOptions options{};
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  options.launch_id = id;
  options.non_donatable_input_indices = keep.data();
  options.num_non_donatable_input_indices = keep.size();
  return options;
}

}  // namespace

// From execute() to the plugin's call, all is one function: after the call, the processor no longer
// knows where the functions around it return to, and each such return takes 20 ns.

// Makes the plugin's call or calls. @post on success raw_outputs and events are filled; otherwise
// only the events of the devices that run are not null
[[gnu::always_inline]] inline Result<void> LoadedExecutable::enter_plugin(Call& call) const {
  if (call.device_by_device) return enter_each(call);
  const PJRT_Api* api = client_->api;
  std::size_t per_device = parameter_types_.size(), outputs = result_types_.size();
  Scratch& lists = scratch();
  for (std::size_t k = 0; k < call.count; ++k) {
    lists.argument_lists[k] = call.raw_arguments.data() + k * per_device;
    lists.output_lists[k] = call.raw_outputs.data() + k * outputs;
  }
  PJRT_ExecuteOptions options = plugin_options(call.id, call.options.keep);
  MESHARD_PJRT_ARGS(PJRT_LoadedExecutable_Execute, args);
  args.executable = raw_;
  args.options = &options;
  args.num_args = per_device;
  args.argument_lists = lists.argument_lists.data();
  args.output_lists = lists.output_lists.data();
  args.num_devices = call.count;
  args.device_complete_events = call.events.data();
  auto done = internal::take_error(api, api->PJRT_LoadedExecutable_Execute(&args),
                                   "PJRT_LoadedExecutable_Execute");
  if (done.ok()) return done;
  std::fill(call.events.begin(), call.events.end(), nullptr);  // what is left there is not owned
  return done.error().with_note(cat("while launching \"", site_->name, "\" on ", call.count,
                                    " devices", device(call, 0).of_platform()));
}

// Launches device k alone. @post if it failed, its event is null
Result<void> LoadedExecutable::enter_on(const Call& call, std::size_t k) const {
  PJRT_Buffer* const* arguments = call.raw_arguments.data() + k * parameter_types_.size();
  PJRT_Buffer** outputs = call.raw_outputs.data() + k * result_types_.size();
  PJRT_ExecuteOptions options = plugin_options(call.id, call.options.keep);
  MESHARD_PJRT_ARGS(PJRT_LoadedExecutable_Execute, args);
  args.executable = raw_;
  args.options = &options;
  args.num_args = parameter_types_.size();
  args.argument_lists = &arguments;
  args.output_lists = &outputs;
  args.num_devices = 1;
  args.execute_device = device(call, k).raw();
  args.device_complete_events = &call.events[k];
  const PJRT_Api* api = client_->api;
  PJRT_Error* error = api->PJRT_LoadedExecutable_Execute(&args);
  if (error == nullptr) [[likely]]
    return {};
  call.events[k] = nullptr;
  return internal::take_error(api, error, "PJRT_LoadedExecutable_Execute");
}

Result<void> LoadedExecutable::enter_each(Call& call) const {
  std::atomic<bool> has_failed{false};
  std::mutex mutex;
  std::size_t failed = 0;      // guarded by mutex
  std::optional<Error> error;  // guarded by mutex
  auto enter_next = [&](std::size_t k) {
    // The memory of released buffers is used again if the same thread allocates next.
    if (call.released && k < call.released->device_count()) call.released->destroy_on(k);
    if (has_failed.load(std::memory_order_relaxed)) return;
    Result<void> done = enter_on(call, k);
    if (done.ok()) return;
    std::lock_guard lock(mutex);
    if (has_failed.exchange(true)) return;
    failed = k;
    error = done.error();
  };
  if (is_portable_ && parameter_types_.size() + result_types_.size() >= kLeastBuffersToShare)
    internal::LaunchHelper::share(call.count, enter_next);
  else
    for (std::size_t k = 0; k < call.count; ++k) enter_next(k);
  if (call.released) call.released->forget();
  if (!error) return {};
  std::size_t outputs = result_types_.size();
  for (std::size_t k = 0; k < call.count; ++k)
    if (call.events[k] != nullptr)  // nobody owns its outputs now
      for (std::size_t j = 0; j < outputs; ++j)
        internal::destroy_buffer(client_->api, call.raw_outputs[k * outputs + j]);
  return error->with_note(cat("while launching \"", site_->name, "\" on device ",
                              device(call, failed).id(), device(call, failed).of_platform(),
                              launched_on(call)));
}

// For the error of a device-by-device launch: the devices that run.
std::string LoadedExecutable::launched_on(const Call& call) const {
  std::string ids;
  for (std::size_t k = 0; k < call.count; ++k)
    if (call.events[k] != nullptr) append(ids, cat(ids.empty() ? " " : ",", device(call, k).id()));
  if (ids.empty()) return "; it was launched on no other device";
  return cat("; it was already launched on device", ids,
             signature_.donated.empty() ? "" : ", which consumed the donated arguments there");
}

// `record` is a spare one, or null.
inline LaunchRecord* LoadedExecutable::new_record(const Call& call, LaunchRecord* record) const {
  ClientState& client = *client_.get();
  if (record == nullptr) record = new LaunchRecord;
  record->number = call.number;
  record->api = client.api;
  record->client = &client;
  record->id = call.id;
  // Null until the plugin creates them; values that a failed call leaves here are not owned.
  record->events.assign(call.count, nullptr);
  record->first = call.first;
  if (record->site != site_) record->site = site_;  // a spare record is often of this program
  record->where = call.options.where;
  return record;
}

// Whether a launch was over when the plugin's call returned. A program whose launches never are is
// asked rarely: the question takes 40 ns.
bool LoadedExecutable::ran_at_once(const LaunchRecord& record) const {
  constexpr std::uint8_t kManyInARow = 16;
  constexpr std::uint64_t kRarely = 64;
  std::uint8_t late = launches_late_.load(std::memory_order_relaxed);
  if (late == kManyInARow && record.number % kRarely != 0) [[likely]]
    return false;
  bool is_over = record.is_through();
  if (std::uint8_t next = is_over ? 0 : std::min<std::uint8_t>(late + 1, kManyInARow); next != late)
    launches_late_.store(next, std::memory_order_relaxed);
  return is_over;
}

namespace {

// Counts the launch among those of the client until its call ends, in any way.
struct Entering {
  // @pre `held` holds the client's launch_mutex. @post it does again
  Entering(ClientState& of, std::unique_lock<std::mutex>& held) : client(of), lock(held) {
    client.begin_launch(lock);
  }
  ~Entering() {
    if (lock.owns_lock()) lock.unlock();  // after an exception
    client.end_launch(launched, spare);
  }
  Entering(const Entering&) = delete;
  Entering& operator=(const Entering&) = delete;
  ClientState& client;
  std::unique_lock<std::mutex>& lock;
  LaunchRecord *launched = nullptr, *spare = nullptr;
};

}  // namespace

// Programs whose devices may wait for each other enter the plugin one at a time, so that all
// devices receive their launches in the same order.
[[gnu::always_inline]] inline Result<Launch> LoadedExecutable::enter(Call& call) const {
  ClientState& client = *client_.get();
  // One section for all that needs the lock: taking it costs as much as the rest of it.
  std::unique_lock lock(client.launch_mutex);
  Entering entering(client, lock);
  std::unique_lock order(client.order_mutex, std::defer_lock);
  if (call.may_meet(signature_)) {
    lock.unlock();
    order.lock();
    lock.lock();
  }
  Result<void> ready = check(call);
  if (ready.ok()) ready = claim_donated(call);
  call.number = ++client.launches;
  LaunchRecord* spare = ready.ok() ? client.spare_launch.release() : nullptr;
  lock.unlock();
  if (!ready.ok()) return ready.error();
  call.id = call.options.id != 0 ? call.options.id : next_launch_id();
  LaunchRecord* record = new_record(call, spare);
  call.events = {record->events.data(), call.count};
  Result<void> entered = enter_plugin(call);
  if (order.owns_lock()) order.unlock();
  bool at_once = entered.ok() && (call.count == 1 || is_portable_) && !call.options.track &&
                 ran_at_once(*record);
  // A small program ran inside the call.
  if (at_once && !record->has_succeeded()) entered = record->await();
  if (!entered.ok()) {
    if (at_once)
      for (PJRT_Buffer* output : call.raw_outputs) internal::destroy_buffer(client.api, output);
    internal::drop_launch(record);
    settle_donated(call);
    if (client.rules.error_wedges_client && call.count > 1 && !call.device_by_device)
      client.wedged = true;
    return entered.error();
  }
  if (at_once) {
    client.remember_success(record->number);
    record->clear();
    entering.spare = record;
    return Launch();
  }
  record->begun = coarse_now();
  record->references.store(call.options.track ? 2 : 1, std::memory_order_relaxed);
  entering.launched = record;
  return call.options.track ? Launch(client_, record) : Launch();
}

[[gnu::always_inline]] inline Result<Launch> LoadedExecutable::run_inline(Call& call) const {
  Scratch& arrays = scratch();
  auto fit = [](auto& vector, std::size_t size) {
    if (vector.size() < size) vector.resize(size);
  };
  std::size_t arguments = call.count * parameter_types_.size();
  std::size_t outputs = call.count * result_types_.size();
  fit(arrays.arguments, arguments);
  fit(arrays.outputs, outputs);
  fit(arrays.argument_lists, call.count);
  fit(arrays.output_lists, call.count);
  call.raw_arguments = {arrays.arguments.data(), arguments};
  call.raw_outputs = {arrays.outputs.data(), outputs};
  internal::ReleasedBuffers& released = internal::ReleasedBuffers::of_thread();
  if (!is_portable_) {
    MESHARD_ASSIGN_OR_RETURN(Launch launch, enter(call));
    released.give_up();  // while the devices run
    give_outputs(call);
    return launch;
  }
  internal::ReleasedBatch batch = released.take();
  call.released = &batch;
  Result<Launch> launch = enter(call);
  batch.destroy();  // if it did not come to that
  released.give_back(batch);
  if (launch.ok()) give_outputs(call);
  return launch;
}

Result<Launch> LoadedExecutable::run(Call& call) const { return run_inline(call); }

Result<Launch> LoadedExecutable::execute(std::span<const BufferList* const> arguments,
                                         std::span<BufferList> outputs,
                                         const LaunchOptions& options) const {
  Call call(arguments, outputs, options, "execute");
  call.count = devices_->size();
  call.device_by_device = is_portable_;
  return run_inline(call);
}

Result<Launch> LoadedExecutable::execute_each_device(std::span<const BufferList* const> arguments,
                                                     std::span<BufferList> outputs,
                                                     const LaunchOptions& options) const {
  Call call(arguments, outputs, options, "execute_each_device");
  call.count = devices_->size();
  call.device_by_device = true;
  return run(call);
}

// ---- The handle on a launch.

Result<void> Launch::await() const {
  return record_ == nullptr ? Result<void>() : record_->await();
}

Result<bool> Launch::is_ready() const {
  if (record_ == nullptr || record_->done.load(std::memory_order_acquire)) return true;
  for (PJRT_Event* event : record_->events) {
    MESHARD_ASSIGN_OR_RETURN(bool ready, internal::is_ready(record_->api, event));
    if (!ready) return false;
  }
  return true;
}

bool Launch::has_failed() const { return record_ != nullptr && record_->has_failed(); }

Result<void> Launch::on_ready(std::size_t device, std::function<void(const Result<void>&)> callback,
                              CallbackThread thread) const {
  if (thread == CallbackThread::kOurs) callback = internal::in_our_thread(std::move(callback));
  if (record_ == nullptr) {
    callback({});
    return {};
  }
  if (device >= record_->events.size())
    return Error(ErrorCode::kOutOfRange,
                 cat("[launch] device index ", device,
                     " is out of range: the number of devices is ", record_->events.size()));
  return internal::call_when_ready(record_->api, record_->events[device],
                                   "PJRT_LoadedExecutable_Execute", std::move(callback));
}

int Launch::id() const { return record_ == nullptr ? 0 : record_->id; }

}  // namespace meshard::pjrt
