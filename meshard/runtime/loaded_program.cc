#include "meshard/runtime/loaded_program.h"

#include <climits>
#include <unordered_map>

#include "meshard/base/thread_instance.h"
#include "meshard/graph/leaf.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/across_processes.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/load_program.h"
#include "meshard/runtime/internal/loaded_parts.h"
#include "meshard/runtime/internal/wait_at_exit.h"

namespace meshard {
namespace {

// Launching device by device from one thread avoids the plugin's thread switches, about 50 us for 8
// devices. Each buffer costs the plugin about 0.4 us, which its own launch distributes over
// threads. Measured on 2 cores with 8 devices: device by device is faster with 20 parameters and 20
// results (120 us instead of 220), but not with 200 of each (1,350 us instead of 950).
constexpr std::size_t kMostBuffersDeviceByDevice = 128;

// A program has few different shardings; a search among more would cost more than it saves.
constexpr std::size_t kMostKnownShardings = 64;

// Reused between calls: with hundreds of parameters on several devices these arrays are large.
struct Scratch {
  std::vector<const pjrt::BufferList*> given;
  std::vector<pjrt::BufferList> made;  // empty lists between calls
};

Scratch& scratch() { return internal::thread_instance<Scratch>(); }

}  // namespace

LoadedProgram::LoadedProgram(const Platforms& platforms, pjrt::Client client, LoweredModule lowered,
                             pjrt::LoadedExecutable executable, ChosenShardings chosen)
    : platforms_(platforms),
      client_(std::move(client)),
      lowered_(std::move(lowered)),
      executable_(std::move(executable)),
      chosen_(std::move(chosen)) {
  order_results();
  for (int donated : executable_->signature().donated)
    donated_.push_back(static_cast<std::uint32_t>(donated));
  if (lowered_.mesh && std::ssize(executable_->devices()) != lowered_.mesh->size())
    launch_base_ = static_cast<std::uint32_t>(fingerprint(lowered_.text).low) | 1;
  else
    choose_way();
  share_equal_shardings();
}

LoadedProgram::~LoadedProgram() = default;

void LoadedProgram::choose_way() {
  if (executable_->devices().size() == 1 ||
      executable_->parameter_count() + executable_->output_count() > kMostBuffersDeviceByDevice)
    return;
  if (!executable_->can_run_device_by_device()) {
    // The parts of a program that calls this process refer to its functions for all devices.
    auto parts = std::make_unique<LoadedParts>(client_, *executable_, !lowered_.calls_host);
    if (!parts->are_wanted()) return;
    parts_ = std::move(parts);
  }
  way_ = LaunchWay::kEachDevice;
}

void LoadedProgram::set_from_bytes(std::string bytes) {
  is_from_bytes_ = true;
  if (parts_) parts_->set_bytes(std::move(bytes));
}

LoadedProgram::LoadedProgram(const Platforms& platforms, pjrt::Client client, LoweredModule lowered,
                             std::optional<pjrt::LoadedExecutable> executable, bool communicates,
                             std::vector<std::uint32_t> donated, ChosenShardings chosen,
                             OrderedStep ordered)
    : platforms_(platforms),
      client_(std::move(client)),
      lowered_(std::move(lowered)),
      executable_(std::move(executable)),
      chosen_(std::move(chosen)),
      donated_(std::move(donated)),
      way_(!executable_   ? LaunchWay::kElsewhere
           : communicates ? LaunchWay::kInOrder
                          : LaunchWay::kTogether),
      step_(std::move(ordered)),
      is_across_(true) {
  order_results();
  share_equal_shardings();
}

// The program returns the shards of this process in the order of the numbering; they are stored in
// the order of the sharding's mesh.
void LoadedProgram::order_results() {
  for (const auto& sharding : chosen_.results) {
    ResultOrder& order = result_orders_.emplace_back();
    if (!executable_ || !sharding || sharding->mesh().rank_map() == lowered_.mesh->rank_map())
      continue;
    std::vector<const pjrt::Device*> devices;
    for (std::int64_t id : sharding->mesh().device_ids())
      if (const pjrt::Device* device = client_.find_device(id); device->addressable())
        devices.push_back(device);
    order.devices = &client_.device_list(devices);
    order.positions = executable_->device_list().positions_of(*order.devices).value();
  }
}

// Some plugins compare the ids of a launch in all processes, and fail if they differ.
int LoadedProgram::next_launch_id() const {
  if (launch_base_ == 0) [[likely]]
    return 0;  // one of the process's own
  std::uint32_t count = next_launch_.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>((launch_base_ + count) % INT_MAX) + 1;
}

Error LoadedProgram::elsewhere() const {
  return Error(ErrorCode::kFailedPrecondition,
               cat("[runtime] the program \"", lowered_.name,
                   "\" runs in other processes only, on the devices of ", *lowered_.mesh));
}

void LoadedProgram::fail_elsewhere() const { throw elsewhere(); }

void LoadedProgram::share_equal_shardings() {
  written_ = chosen_.arguments;
  std::vector<Sharding> known;
  auto share = [&](std::optional<Sharding>& sharding) {
    if (!sharding) return;
    for (const Sharding& each : known)
      if (each == *sharding) {
        sharding = each;
        return;
      }
    if (known.size() < kMostKnownShardings) known.push_back(*sharding);
  };
  for (auto& sharding : chosen_.arguments) share(sharding);
  for (auto& sharding : chosen_.results) share(sharding);
  share_equal_types();
}

void LoadedProgram::share_equal_types() {
  std::unordered_multimap<std::size_t, ShardedType> known;
  auto shared = [&](const TensorType& type, const std::optional<Sharding>& sharding) {
    auto [begin, end] = known.equal_range(type.hash());
    for (auto each = begin; each != end; ++each)
      if (each->second.type() == type && same_sharding(each->second.sharding(), sharding))
        return each->second;
    return known.emplace(type.hash(), ShardedType(type, sharding))->second;
  };
  for (std::size_t i = 0; i < chosen_.arguments.size(); ++i)
    argument_types_.push_back(shared(lowered_.arguments[i].type, chosen_.arguments[i]));
  for (std::size_t i = 0; i < chosen_.results.size(); ++i)
    result_types_.push_back(shared(lowered_.results[i].type, chosen_.results[i]));
}

const pjrt::LoadedExecutable* LoadedProgram::launched_each() const {
  if (way_ != LaunchWay::kEachDevice) return nullptr;
  return parts_ ? parts_->for_launch() : &*executable_;
}

[[gnu::always_inline]] inline Result<pjrt::Launch> LoadedProgram::execute(
    std::span<const pjrt::BufferList* const> arguments, std::span<pjrt::BufferList> results,
    const pjrt::LaunchOptions& options) const {
  if (way_ == LaunchWay::kInOrder) [[unlikely]]
    return platforms_.across()->order().execute(*executable_, arguments, results, options, step_);
  return executable_->execute(arguments, results, options);
}

// Part of launch(), as a return from it would take longer than the rest of it (pjrt/launch.cc).
[[gnu::always_inline]] inline Result<pjrt::Launch> LoadedProgram::launch_buffers(
    std::span<const pjrt::BufferList* const> arguments, std::span<pjrt::BufferList> results,
    SourceLocation where, bool track) const {
  if (internal::records_events()) [[unlikely]]
    return launch_recorded(arguments, results, where);
  pjrt::LaunchOptions options{.track = track, .where = where, .id = next_launch_id()};
  const pjrt::LoadedExecutable* each = launched_each();
  return each ? each->execute_each_device(arguments, results, options)
              : execute(arguments, results, options);
}

Result<pjrt::Launch> LoadedProgram::launch_recorded(
    std::span<const pjrt::BufferList* const> arguments, std::span<pjrt::BufferList> results,
    SourceLocation where) const {
  // Launch on all devices at once: device by device, the completion events would be available only
  // after the last launch.
  internal::HostSpan span;
  span.begin("launch", lowered_.name, where);
  internal::TraceClock::time_point start = internal::TraceClock::now();
  Result<pjrt::Launch> launched =
      execute(arguments, results, {.where = where, .id = next_launch_id()});
  if (!launched.ok()) return launched;
  internal::record_executions(*launched, executable_->devices(), lowered_.name, where, start);
  return launched;
}

Result<pjrt::Launch> LoadedProgram::skip(std::span<const DeviceArray* const> arguments,
                                         std::span<Tensor> results, SourceLocation where) const {
  for (const DeviceArray* argument : arguments)
    if (!argument->is_live())
      return Error(ErrorCode::kFailedPrecondition, "[runtime] an argument is gone");
  for (std::uint32_t i : donated_) arguments[i]->set_donated_at(where);
  std::vector<pjrt::BufferList> empty(results.size());
  take_results(empty, results, where);
  return pjrt::Launch();
}

Result<pjrt::Launch> LoadedProgram::launch(std::span<const DeviceArray* const> arguments,
                                           std::span<Tensor> results, SourceLocation where,
                                           bool track) const {
  if (way_ == LaunchWay::kElsewhere) [[unlikely]]
    return skip(arguments, results, where);
  std::vector<const pjrt::BufferList*>& given = scratch().given;
  given.clear();
  for (const DeviceArray* argument : arguments) given.push_back(&argument->buffers());
  std::vector<pjrt::BufferList>& made = scratch().made;
  if (made.size() < results.size()) made.resize(results.size());
  std::span<pjrt::BufferList> taken(made.data(), results.size());
  std::unique_lock<std::mutex> checking;
  if (lowered_.nan_checks) [[unlikely]]
    checking = lowered_.nan_checks->begin();
  Result<pjrt::Launch> launched = launch_buffers(given, taken, where, track || lowered_.nan_checks);
  if (!launched.ok()) [[unlikely]]
    return launched;
  internal::wait_at_exit(internal::count(internal::counters().launches));
  for (std::uint32_t i : donated_) arguments[i]->set_donated_at(where);

  take_results(taken, results, where);
  if (lowered_.nan_checks && launched->await().ok()) [[unlikely]]
    internal::throw_found_nan(lowered_, where);
  return launched;
}

Result<void> LoadedProgram::launch_on_views(std::span<const pjrt::BufferView> arguments,
                                            std::span<pjrt::Buffer> results,
                                            SourceLocation where) const {
  const bool recorded = internal::records_events();
  std::unique_lock<std::mutex> checking;
  if (lowered_.nan_checks) [[unlikely]]
    checking = lowered_.nan_checks->begin();
  internal::HostSpan span;
  if (recorded) span.begin("launch", lowered_.name, where);
  const internal::TraceClock::time_point start = internal::TraceClock::now();
  MESHARD_ASSIGN_OR_RETURN(
      pjrt::Launch launch,
      executable_->execute_on_views(arguments, results,
                                    {.track = recorded || lowered_.nan_checks, .where = where}));
  if (recorded)
    internal::record_executions(launch, executable_->devices(), lowered_.name, where, start);
  internal::wait_at_exit(internal::count(internal::counters().launches));
  if (lowered_.nan_checks && launch.await().ok()) [[unlikely]]
    internal::throw_found_nan(lowered_, where);
  return {};
}

void LoadedProgram::take_results(std::span<pjrt::BufferList> made, std::span<Tensor> results,
                                 SourceLocation where) const {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (const ResultOrder& order = result_orders_[i]; order.devices)
      made[i].reorder(*order.devices, order.positions);
    const ShardedType& type = result_types_[i];
    results[i] = make_array(type.type(),
                            make_storage<DeviceArray>(platforms_, type, std::move(made[i])), where);
  }
}

Result<void> LoadedProgram::look_at_whole(
    const std::function<Result<void>(const pjrt::LoadedExecutable&)>& look) const {
  if (!is_across_) return look(*executable_);
  AcrossProcesses* across = platforms_.across();
  if (!across || !(across->client() == client_)) return elsewhere();
  MESHARD_ASSIGN_OR_RETURN(pjrt::Client compiler, across->partitioner());
  std::vector<int> devices;
  for (std::int64_t i = 0; i < lowered_.mesh->size(); ++i) devices.push_back(static_cast<int>(i));
  MESHARD_ASSIGN_OR_RETURN(pjrt::LoadedExecutable whole,
                           compiler.compile(lowered_.text, compile_options_for(compiler, devices)));
  return look(whole);
}

ProgramView view_of(const CompiledProgram& program) {
  internal_check(program.loaded() != nullptr, "[runtime] a program of another evaluator");
  const Program& source = program.source();
  return {*program.loaded(), source.graph, source.parameter_names, source.donated};
}

}  // namespace meshard
