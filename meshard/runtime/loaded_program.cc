#include "meshard/runtime/loaded_program.h"

#include "meshard/base/thread_instance.h"
#include "meshard/graph/leaf.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/runtime/copies.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/event_recorder.h"
#include "meshard/runtime/placement.h"
#include "meshard/runtime/runtime.h"
#include "meshard/runtime/wait.h"

namespace meshard {
namespace {

// Launching device by device from one thread avoids the plugin's thread switches, about 50 us for 8
// devices. Each buffer costs the plugin about 0.4 us, which its own launch distributes over
// threads. Measured on 2 cores with 8 devices: device by device is faster with 20 parameters and 20
// results, but not with 200 of each.
constexpr std::size_t kMostBuffersDeviceByDevice = 128;

// A program has few different shardings; a search among more would cost more than it saves.
constexpr std::size_t kMostKnownShardings = 64;

// Reused between calls: with hundreds of parameters on several devices these arrays are large.
struct Scratch {
  std::vector<const pjrt::Buffer*> buffers;
  std::vector<pjrt::Buffer> made;  // empty buffers between calls
};

Scratch& scratch() { return internal::thread_instance<Scratch>(); }

}  // namespace

LoadedProgram::LoadedProgram(pjrt::Client client, LoweredModule lowered,
                             pjrt::LoadedExecutable executable, ChosenShardings chosen)
    : client_(std::move(client)),
      lowered_(std::move(lowered)),
      executable_(std::move(executable)),
      chosen_(std::move(chosen)) {
  plans_.resize(chosen_.arguments.size());
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    // If the mesh's order differs from the numbering, the argument's buffers stay in the mesh's
    // order.
    const auto& sharding = chosen_.arguments[i];
    if (!sharding || sharding->mesh().rank_map() == lowered_.mesh->rank_map()) continue;
    for (std::int64_t d = 0; d < lowered_.mesh->size(); ++d)
      plans_[i].order.push_back(
          static_cast<std::uint32_t>(*sharding->mesh().position(lowered_.mesh->device_id(d))));
  }
  for (int donated : executable_.signature().donated)
    donated_.push_back(static_cast<std::uint32_t>(donated));
  device_by_device_ =
      executable_.devices().size() > 1 && executable_.can_run_device_by_device() &&
      executable_.parameter_count() + executable_.output_count() <= kMostBuffersDeviceByDevice;
  share_equal_shardings();
}

void LoadedProgram::share_equal_shardings() {
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
}

StoragePtr LoadedProgram::on_devices(std::size_t i, const Tensor& tensor,
                                     SourceLocation where) const {
  const std::optional<Sharding>& sharding = chosen_.arguments[i];
  const pjrt::Device& device = *executable_.devices()[0];
  Storage* storage = tensor.value().storage();
  if (storage->kind() == Storage::Kind::kDevice && is_on_this_client(*storage)) {
    // An equivalent sharding (an open dimension, another name of an axis) with the same shards in
    // the same order: nothing moves.
    const Sharding* present = storage->sharding();
    if (present && sharding &&
        present->is_equivalent_to(*sharding,
                                  static_cast<std::size_t>(tensor.value().type().rank())))
      return StoragePtr(storage);
    if (!storage->gone().empty()) (void)storage->to_host(where);  // throws with the reason
    // The program may have been compiled for an unplaced argument.
    if (present && sharding && !is_unplaced(tensor.value()) && tensor.value().type().rank() > 0 &&
        !present->mesh().same_devices(sharding->mesh()) && !is_whole_on(*present, sharding->mesh()))
      throw two_device_sets("jit", present->mesh(), tensor.where(), sharding->mesh(), where, where);
  }
  // Once for each value: host data is sent, and device data is copied between devices. For a
  // program on one device, all data goes through the host.
  if (sharding) return StoragePtr(copy_with(tensor.value(), *sharding, where).value().storage());
  if (StoragePtr known = find_copy(*storage, sharding, &device)) return known;
  StoragePtr placed = place(client_, storage->to_host(where), device, where);
  remember_copy(*storage, placed);
  return placed;
}

Result<pjrt::Launch> LoadedProgram::launch(std::span<const pjrt::Buffer* const> arguments,
                                           std::span<pjrt::Buffer> results, SourceLocation where,
                                           bool track) const {
  if (!internal::records_events()) [[likely]] {
    pjrt::LaunchOptions options{.track = track, .where = where};
    return device_by_device_ ? executable_.execute_each_device(arguments, results, options)
                             : executable_.execute(arguments, results, options);
  }
  // Launch on all devices at once: device by device, the completion events would be available only
  // after the last launch.
  internal::HostSpan span;
  span.begin("launch", lowered_.name, where);
  internal::TraceClock::time_point start = internal::TraceClock::now();
  Result<pjrt::Launch> launched = executable_.execute(arguments, results, {.where = where});
  if (!launched.ok()) return launched;
  internal::record_executions(*launched, executable_.devices(), lowered_.name, where, start);
  return launched;
}

pjrt::Launch LoadedProgram::run(std::span<const Tensor* const> arguments, std::span<Tensor> results,
                                SourceLocation where, std::span<const std::string> names,
                                bool track) const {
  check_not_forked(where);
  internal::HostSpan span;
  if (internal::records_events()) [[unlikely]]
    span.begin("call", lowered_.name, where);
  std::size_t count = chosen_.arguments.size(), outputs = chosen_.results.size();
  std::size_t devices = executable_.devices().size();
  internal_check(arguments.size() == count && results.size() == outputs,
                 "[runtime] wrong number of arguments or results");
  InlineVector<const DeviceArray*, 16> arrays;
  InlineVector<StoragePtr, 4> kept;
  for (std::size_t i = 0; i < count; ++i) {
    Storage& storage = computed_storage(arguments[i]->value(), where);
    const DeviceArray* array = storage.kind() == Storage::Kind::kDevice
                                   ? static_cast<const DeviceArray*>(&storage)
                                   : nullptr;
    if (!array || !array->is_current() || !same_sharding(array->sharding(), chosen_.arguments[i]) ||
        (!array->sharding() && &array->buffers()[0].device() != executable_.devices()[0]))
        [[unlikely]] {
      kept.push_back(on_devices(i, *arguments[i], where));
      array = static_cast<const DeviceArray*>(kept.back().get());
    }
    arrays.push_back(array);
  }
  // Only here, because placing an argument may run another program, which uses the scratch.
  std::vector<const pjrt::Buffer*>& buffers = scratch().buffers;
  buffers.resize(count * devices);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& order = plans_[i].order;
    std::span<const pjrt::Buffer> own = arrays[i]->buffers();
    for (std::size_t d = 0; d < devices; ++d)
      buffers[d * count + i] = &own[order.empty() ? d : order[d]];
  }

  std::vector<pjrt::Buffer>& made = scratch().made;
  if (made.size() < outputs * devices) made.resize(outputs * devices);
  std::span<const pjrt::Buffer* const> given(buffers.data(), buffers.size());
  std::span<pjrt::Buffer> taken(made.data(), outputs * devices);
  std::unique_lock<std::mutex> checking;
  if (lowered_.nan_checks) [[unlikely]]
    checking = lowered_.nan_checks->begin();
  Result<pjrt::Launch> launched = launch(given, taken, where, track || lowered_.nan_checks);
  if (!launched.ok()) [[unlikely]]
    fail(launched.error(), arguments, std::span(arrays.data(), arrays.size()), names, where);
  internal::wait_at_exit(internal::count(internal::counters().launches));
  for (std::uint32_t i : donated_) arrays[i]->set_donated_at(where);

  take_results(made, results, where);
  if (lowered_.nan_checks && launched->await().ok()) [[unlikely]]
    internal::throw_found_nan(lowered_, where);
  return *std::move(launched);
}

void LoadedProgram::take_results(std::span<pjrt::Buffer> made, std::span<Tensor> results,
                                 SourceLocation where) const {
  std::size_t devices = executable_.devices().size(), outputs = results.size();
  for (std::size_t i = 0; i < outputs; ++i) {
    DeviceArray::Buffers shards;
    shards.reserve(devices);
    for (std::size_t d = 0; d < devices; ++d) shards.push_back(std::move(made[d * outputs + i]));
    const std::optional<Sharding>& sharding = chosen_.results[i];
    if (sharding && sharding->mesh().rank_map() != lowered_.mesh->rank_map()) {
      // The program returns the shards in the order of the numbering; store them in the order of
      // the sharding's mesh.
      DeviceArray::Buffers ordered(devices);
      for (std::size_t d = 0; d < devices; ++d)
        ordered[static_cast<std::size_t>(*sharding->mesh().position(
            lowered_.mesh->device_id(static_cast<std::int64_t>(d))))] = std::move(shards[d]);
      shards = std::move(ordered);
    }
    results[i] = make_array(
        lowered_.results[i].type,
        make_storage<DeviceArray>(lowered_.results[i].type, sharding, std::move(shards)), where);
  }
}

void LoadedProgram::fail(const Error& error, std::span<const Tensor* const> arguments,
                         std::span<const DeviceArray* const> arrays,
                         std::span<const std::string> names, SourceLocation where) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    std::string reason = arrays[i]->gone();
    if (reason.empty()) continue;
    Error gone(ErrorCode::kFailedPrecondition,
               cat("[runtime] ",
                   i < names.size() ? names[i] : std::string("a value that the program uses"), ", ",
                   arrays[i]->type(), ", is gone: ", reason),
               where);
    SourceLocation made = arguments[i]->where();
    throw made.known() ? gone.with_note(cat("it was made at ", made)) : gone;
  }
  throw error.at(where);
}

Result<std::shared_ptr<const LoadedProgram>> load_program(const pjrt::Client& client,
                                                          LoweredModule lowered,
                                                          SourceLocation where) {
  internal::HostSpan span;
  if (internal::records_events()) span.begin("compile", lowered.name, where);
  pjrt::CompileOptions options;
  options.num_partitions = static_cast<int>(lowered.num_partitions());
  if (lowered.mesh) {
    for (std::int64_t id : lowered.mesh->device_ids())
      options.device_assignment.push_back(device_of(client, id, {}).id());
  } else {
    options.device_assignment = {client.addressable_devices()[0]->id()};
  }
  // By default, max and min of XLA's CPU compiler may lose a NaN. Other platforms keep it, and so
  // does meshard.
  if (client.platform() == "cpu") options.overrides["xla_cpu_enable_fast_min_max"] = false;
  // XNNPACK's kernels, which XLA uses for matrix products on CPUs with AVX-512, wait for workers of
  // the pool whose threads wait in collectives. With fewer cores than devices, this deadlocks.
  if (client.platform() == "cpu" && options.num_partitions > 1)
    options.overrides["xla_cpu_use_xnnpack"] = false;
  internal::count(internal::counters().compiles);
  MESHARD_ASSIGN_OR_RETURN(pjrt::LoadedExecutable executable,
                           client.compile(lowered.text, options));
  ChosenShardings chosen;
  if (lowered.mesh) {
    MESHARD_ASSIGN_OR_RETURN(std::string bytes, executable.executable().optimized_program());
    MESHARD_ASSIGN_OR_RETURN(pjrt::HloModule module, pjrt::HloModule::from_bytes(bytes));
    MESHARD_ASSIGN_OR_RETURN(chosen, read_shardings(lowered, module));
  } else {
    chosen.arguments.resize(lowered.arguments.size());
    chosen.results.resize(lowered.results.size());
  }
  return std::make_shared<const LoadedProgram>(client, std::move(lowered), std::move(executable),
                                               std::move(chosen));
}

}  // namespace meshard
