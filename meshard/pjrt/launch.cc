// Makes a launch: checks its arguments, enters the one order of all devices, calls the plugin, and
// passes the ownership of buffers on.
// Tested in tests/plugin/launches_test.cc.
#include "meshard/pjrt/launch.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "meshard/base/threads.h"
#include "meshard/pjrt/internal/await.h"
#include "meshard/pjrt/internal/client_state.h"
#include "meshard/pjrt/loaded_executable.h"

namespace meshard::pjrt {

using internal::BufferState;
using internal::ClientState;
using internal::LaunchRecord;

namespace {

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

// One launch in progress.
struct LoadedExecutable::Call {
  // A constructor, because the compiler zeroes a large aggregate with `rep stos`, which takes
  // longer to start than the stores take.
  Call(std::span<const BufferList* const> given, std::span<BufferList> to,
       const LaunchOptions& with, std::string_view caller, bool by_device,
       const DeviceLoop* in = nullptr)
      : arguments(given),
        outputs(to),
        options(with),
        place(caller),
        device_by_device(by_device),
        loop(in) {}

  std::span<const BufferList* const> arguments;
  std::span<BufferList> outputs;
  const LaunchOptions& options;
  std::string_view place;
  bool device_by_device;  // by a call of the plugin for each device, which names it
  const DeviceLoop* loop;

  int id = 0;
  std::uint64_t number = 0;                    // LaunchRecord::number
  std::uint32_t mark = 0;                      // marks the lists that this launch consumes; 0: none
  std::span<PJRT_Buffer*> raw_arguments = {};  // device by device, like the outputs
  std::span<PJRT_Buffer*> raw_outputs = {};
  std::span<PJRT_Event*> events = {};
};

Result<void> LoadedExecutable::check(const Call& call) const {
  std::size_t parameters = parameter_types_.size();
  auto wrong = [&](ErrorCode code, auto... parts) {
    return Error(code, cat("[", call.place, "] ", parts...));
  };
  if (call.arguments.size() != parameters)
    return wrong(ErrorCode::kInvalidArgument, "the program takes ", parameters, " arguments, got ",
                 call.arguments.size());
  if (call.outputs.size() != result_types_.size())
    return wrong(ErrorCode::kInvalidArgument, "the program returns ", result_types_.size(),
                 " outputs, got space for ", call.outputs.size());
  if (call.device_by_device && !can_run_device_by_device())
    return wrong(
        ErrorCode::kFailedPrecondition, "the parts of this program wait for each other, and the ",
        own_.client->platform, " plugin ",
        own_.client->rules.parts_start_together ? "starts no part before all parts are launched"
                                                : "may run one device's part in the calling thread",
        ": use execute");
  if (own_.client->wedged && devices_->size() > 1)
    return wrong(ErrorCode::kFailedPrecondition,
                 "an earlier launch of this client failed inside the plugin, which can no longer "
                 "complete launches on several devices: create a new client (restart_runtime())");
  std::int64_t last = -1;
  for (std::int64_t kept : call.options.keep) {
    if (kept <= last || kept >= static_cast<std::int64_t>(parameters))
      return wrong(ErrorCode::kInvalidArgument, "keep must list parameter numbers below ",
                   parameters, " in ascending order, got ", kept, " after ", last);
    last = kept;
  }
  return take_arguments(call);
}

Result<void> LoadedExecutable::take_arguments(const Call& call) const {
  std::size_t per_device = parameter_types_.size(), devices = devices_->size();
  PJRT_Buffer** raw = call.raw_arguments.data();
  for (std::size_t i = 0; i < per_device; ++i) {
    const BufferList* list = call.arguments[i];
    if (list == nullptr || list->state_.type != parameter_types_[i] || !list->is_live())
        [[unlikely]]
      return explain(call, i);
    PJRT_Buffer* const* from = list->raw_.data();
    if (list->devices_ == devices_) [[likely]] {
      for (std::size_t k = 0; k < devices; ++k) raw[k * per_device + i] = from[k];
      continue;
    }
    const DeviceOrder* other = order_of(*list->devices_);
    if (other == nullptr) return explain(call, i);
    for (std::size_t k = 0; k < devices; ++k) raw[k * per_device + i] = from[other->order[k]];
  }
  return {};
}

// Null if the list has other devices than the program.
const LoadedExecutable::DeviceOrder* LoadedExecutable::order_of(const DeviceList& list) const {
  for (const DeviceOrder& known : orders_)
    if (known.of == &list) return &known;
  auto order = list.positions_of(*devices_);
  return order ? &orders_.emplace_back(&list, *std::move(order)) : nullptr;
}

Error LoadedExecutable::explain(const Call& call, std::size_t i) const {
  const BufferList* list = call.arguments[i];
  auto invalid = [&](auto... parts) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[", call.place, "] argument ", i, ": ", parts...));
  };
  if (list == nullptr) return invalid("the list is null");
  if (!*list) return invalid("the list is empty");
  if (auto live = (*list)[0].check_live(call.place); !live.ok())
    return invalid(live.error().message());
  if (!list->is_of(own_.client)) return invalid("the buffers belong to another client");
  if (list->type() != *parameter_types_[i])
    return invalid("the program takes ", *parameter_types_[i], ", the buffers are ", list->type());
  auto ids = [](const DeviceList& devices) {
    std::string text;
    for (const Device* device : devices.devices())
      append(text, text.empty() ? "" : ",", device->id());
    return text;
  };
  return invalid("the buffers are on devices ", ids(list->devices()),
                 ", the program runs on devices ", ids(*devices_));
}

// Marks the lists that this launch consumes, and rejects one that is passed twice.
Result<void> LoadedExecutable::claim_donated(Call& call) const {
  if (signature_.donated.empty()) return {};
  call.mark = ++own_.client->launch_mark;
  if (call.mark == 0) call.mark = ++own_.client->launch_mark;  // 0 marks a new list
  auto kept = [&](std::size_t parameter) {
    return std::ranges::binary_search(call.options.keep, static_cast<std::int64_t>(parameter));
  };
  auto twice = [&](std::size_t parameter) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[", call.place, "] argument ", parameter,
                     ": the same buffer is passed twice, and one of the two arguments is donated"));
  };
  for (int donated : signature_.donated) {
    auto i = static_cast<std::size_t>(donated);
    if (kept(i)) continue;
    const BufferState& state = call.arguments[i]->state_;
    if (state.launch_mark == call.mark) return twice(i);
    state.launch_mark = call.mark;
  }
  std::size_t next_donated = 0;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    bool donated = next_donated < signature_.donated.size() &&
                   signature_.donated[next_donated] == static_cast<int>(i);
    if (donated) ++next_donated;
    if (donated && !kept(i)) continue;
    if (call.arguments[i]->state_.launch_mark == call.mark) return twice(i);
  }
  std::size_t bytes = 0;  // on each device
  for (int donated : signature_.donated) {
    auto i = static_cast<std::size_t>(donated);
    if (kept(i)) continue;
    call.arguments[i]->set_life_uncounted(BufferState::kDonated);
    bytes += call.arguments[i]->bytes_;
  }
  if (bytes > 0)
    for (const Device* device : devices_->devices())
      device->count_bytes(static_cast<std::int64_t>(bytes), false);
  return {};
}

// After a failed launch, marks donated lists that the plugin did not delete as live again.
void LoadedExecutable::settle_donated(const Call& call) const {
  for (int donated : signature_.donated) {
    const BufferList& list = *call.arguments[static_cast<std::size_t>(donated)];
    if (list.state_.launch_mark == call.mark && list.is_donated() && !list.plugin_says_deleted())
      list.set_life(BufferState::kLive);
  }
}

// Makes the caller the owner of the buffers that the plugin returned.
void LoadedExecutable::give_outputs(const Call& call) const {
  std::size_t outputs = result_types_.size();
  internal::add_references(own_.client.get(), static_cast<long>(outputs));
  for (const Device* device : devices_->devices()) device->count_bytes(result_bytes_, true);
  for (std::size_t i = 0; i < outputs; ++i)
    call.outputs[i].set_output(own_.client.get(), call.number, call.raw_outputs.data() + i, outputs,
                               result_types_[i], result_sizes_[i], devices_);
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
  const PJRT_Api* api = own_.client->api;
  std::size_t per_device = parameter_types_.size(), outputs = result_types_.size();
  Scratch& lists = scratch();
  for (std::size_t k = 0; k < devices_->size(); ++k) {
    lists.argument_lists[k] = call.raw_arguments.data() + k * per_device;
    lists.output_lists[k] = call.raw_outputs.data() + k * outputs;
  }
  PJRT_ExecuteOptions options = plugin_options(call.id, call.options.keep);
  MESHARD_PJRT_ARGS(PJRT_LoadedExecutable_Execute, args);
  args.executable = own_.raw;
  args.options = &options;
  args.num_args = per_device;
  args.argument_lists = lists.argument_lists.data();
  args.output_lists = lists.output_lists.data();
  args.num_devices = devices_->size();
  args.device_complete_events = call.events.data();
  auto done = internal::take_error(api, api->PJRT_LoadedExecutable_Execute(&args),
                                   "PJRT_LoadedExecutable_Execute");
  if (done.ok()) return done;
  std::ranges::fill(call.events, nullptr);  // what is left there is not owned
  return done.error().with_note(cat("while launching \"", site_->name, "\" on ", devices_->size(),
                                    " devices", (*devices_)[0].of_platform()));
}

// Launches device k alone. @post if it failed, its event is null
Result<void> LoadedExecutable::enter_on(const Call& call, std::size_t k) const {
  PJRT_Buffer* const* arguments = call.raw_arguments.data() + k * parameter_types_.size();
  PJRT_Buffer** outputs = call.raw_outputs.data() + k * result_types_.size();
  PJRT_ExecuteOptions options = plugin_options(call.id, call.options.keep);
  MESHARD_PJRT_ARGS(PJRT_LoadedExecutable_Execute, args);
  args.executable = own_.raw;
  args.options = &options;
  args.num_args = parameter_types_.size();
  args.argument_lists = &arguments;
  args.output_lists = &outputs;
  args.num_devices = 1;
  args.execute_device = (*devices_)[k].raw();
  args.device_complete_events = &call.events[k];
  const PJRT_Api* api = own_.client->api;
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
    if (has_failed.load(std::memory_order_relaxed)) return;
    Result<void> done = enter_on(call, k);
    if (done.ok()) return;
    std::lock_guard lock(mutex);
    if (has_failed.exchange(true)) return;
    failed = k;
    error = done.error();
  };
  if (call.loop)
    (*call.loop)(devices_->size(), enter_next);
  else
    for (std::size_t k = 0; k < devices_->size(); ++k) enter_next(k);
  if (!error) return {};
  std::size_t outputs = result_types_.size();
  for (std::size_t k = 0; k < devices_->size(); ++k)
    if (call.events[k] != nullptr)  // nobody owns its outputs now
      for (std::size_t j = 0; j < outputs; ++j)
        internal::destroy(own_.client->api, call.raw_outputs[k * outputs + j]);
  return error->with_note(cat("while launching \"", site_->name, "\" on device ",
                              (*devices_)[failed].id(), (*devices_)[failed].of_platform(),
                              launched_on(call)));
}

// For the error of a device-by-device launch: the devices that run.
std::string LoadedExecutable::launched_on(const Call& call) const {
  std::string ids;
  for (std::size_t k = 0; k < devices_->size(); ++k)
    if (call.events[k] != nullptr) append(ids, ids.empty() ? " " : ",", (*devices_)[k].id());
  if (ids.empty()) return "; it was launched on no other device";
  return cat("; it was already launched on device", ids,
             signature_.donated.empty() ? "" : ", which consumed the donated arguments there");
}

// `record` is a spare one, or null.
inline LaunchRecord* LoadedExecutable::new_record(const Call& call, LaunchRecord* record) const {
  ClientState& client = *own_.client.get();
  if (record == nullptr) record = new LaunchRecord;
  record->number = call.number;
  record->api = client.api;
  record->client = &client;
  record->id = call.id;
  // Null until the plugin creates them; values that a failed call leaves here are not owned.
  record->events.assign(devices_->size(), nullptr);
  if (record->site != site_) record->site = site_;  // a spare record is often of this program
  record->where = call.options.where;
  return record;
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
  ClientState& client = *own_.client.get();
  // One section for all that needs the lock: taking it costs as much as the rest of it.
  std::unique_lock lock(client.launch_mutex);
  Entering entering(client, lock);
  std::unique_lock order(client.order_mutex, std::defer_lock);
  // Whether the devices may wait for each other.
  const bool may_meet =
      devices_->size() > 1 && (!call.device_by_device || signature_.has_collectives);
  if (may_meet) {
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
  call.events = {record->events.data(), record->events.size()};
  Result<void> entered = enter_plugin(call);
  if (order.owns_lock()) order.unlock();
  const bool ended =
      entered.ok() && call.options.ended && !call.options.track && record->is_through();
  if (ended && !record->has_succeeded()) entered = record->await();
  if (!entered.ok()) {
    if (ended)
      for (PJRT_Buffer* output : call.raw_outputs) internal::destroy(client.api, output);
    internal::drop_launch(record);
    settle_donated(call);
    if (client.rules.error_wedges_client && devices_->size() > 1 && !call.device_by_device)
      client.wedged = true;
    return entered.error();
  }
  if (ended) {
    *call.options.ended = true;
    client.remember_success(record->number);
    record->clear();
    entering.spare = record;
    return Launch();
  }
  record->begun = coarse_now();
  record->references.store(call.options.track ? 2 : 1, std::memory_order_relaxed);
  entering.launched = record;
  return call.options.track ? Launch(own_.client, record) : Launch();
}

[[gnu::always_inline]] inline Result<Launch> LoadedExecutable::run(Call& call) const {
  Scratch& arrays = scratch();
  auto fit = [](auto& vector, std::size_t size) {
    if (vector.size() < size) vector.resize(size);
  };
  std::size_t devices = devices_->size();
  std::size_t arguments = devices * parameter_types_.size();
  std::size_t outputs = devices * result_types_.size();
  fit(arrays.arguments, arguments);
  fit(arrays.outputs, outputs);
  fit(arrays.argument_lists, devices);
  fit(arrays.output_lists, devices);
  call.raw_arguments = {arrays.arguments.data(), arguments};
  call.raw_outputs = {arrays.outputs.data(), outputs};
  Result<Launch> launch = enter(call);
  if (launch.ok()) [[likely]]
    give_outputs(call);
  return launch;
}

Result<Launch> LoadedExecutable::execute(std::span<const BufferList* const> arguments,
                                         std::span<BufferList> outputs,
                                         const LaunchOptions& options) const {
  Call call(arguments, outputs, options, "execute", is_portable_);
  return run(call);
}

Result<Launch> LoadedExecutable::execute_each_device(std::span<const BufferList* const> arguments,
                                                     std::span<BufferList> outputs,
                                                     const LaunchOptions& options,
                                                     const DeviceLoop* loop) const {
  Call call(arguments, outputs, options, "execute_each_device", true, loop);
  return run(call);
}

// A list that shows a buffer of another owner.
struct LoadedExecutable::Borrowed {
  Borrowed() = default;
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    if (list) list.forget();
  }
  void show(const BufferView& view, const DeviceList* devices) {
    if (!view) return;
    list.state_.client = view.state_->client;
    list.state_.type = view.state_->type;
    list.state_.life.store(view.state_->life.load(std::memory_order_relaxed),
                           std::memory_order_relaxed);
    list.devices_ = devices;
    list.raw_.push_back(view.raw_);
  }
  BufferList list;
};

Result<Launch> LoadedExecutable::execute_on_views(std::span<const BufferView> arguments,
                                                  std::span<Buffer> outputs,
                                                  const LaunchOptions& options) const {
  if (devices_->size() != 1 || !signature_.donated.empty())
    return Error(
        ErrorCode::kFailedPrecondition,
        cat("[execute_on_views] the program runs on ", devices_->size(), " devices and consumes ",
            signature_.donated.size(), " arguments; it must run on one and consume none"));
  std::vector<Borrowed> borrowed(arguments.size());
  std::vector<const BufferList*> pointers;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Device* on = arguments[i].device_;
    borrowed[i].show(arguments[i],
                     on == &(*devices_)[0] ? devices_ : own_.client->intern({&on, 1}));
    pointers.push_back(&borrowed[i].list);
  }
  std::vector<BufferList> made(outputs.size());
  MESHARD_ASSIGN_OR_RETURN(Launch launch, execute(pointers, made, options));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = std::move(std::move(made[i]).split()[0]);
  return launch;
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
