// Tested in meshard/runtime/loaded_program_test.cc.
#include "meshard/runtime/internal/program_here.h"

#include <climits>
#include <cstddef>
#include <utility>

#include "meshard/runtime/internal/launch_helper.h"
#include "meshard/runtime/internal/launch_program.h"

namespace meshard {
namespace {

// Whether the plugin runs a part of the program in other processes.
bool is_joint(const LoweredModule& lowered, const pjrt::LoadedExecutable& executable) {
  return lowered.mesh && std::ssize(executable.devices()) != lowered.mesh->size();
}

}  // namespace

ProgramHere::ProgramHere(const Platforms& platforms, pjrt::Client client, LoweredModule lowered,
                         pjrt::LoadedExecutable executable, ChosenShardings chosen)
    : LoadedProgram(platforms, std::move(client), std::move(lowered), std::move(executable),
                    std::move(chosen)) {
  if (is_joint(this->lowered(), this->executable()))
    launch_base_ = static_cast<std::uint32_t>(fingerprint(this->lowered().text).low) | 1;
}

// Some plugins compare the ids of a launch in all processes, and fail if they differ.
int ProgramHere::next_launch_id() const {
  if (launch_base_ == 0) [[likely]]
    return 0;  // one of the process's own
  std::uint32_t count = next_launch_.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>((launch_base_ + count) % INT_MAX) + 1;
}

Result<pjrt::Launch> ProgramHere::launch(Arrays arguments, std::span<Tensor> results,
                                         SourceLocation where, bool track) const {
  const auto execute = [this](Lists given, Made made, const pjrt::LaunchOptions& options) {
    return launch_together(given, made, options);
  };
  return launch_by(next_launch_id(), execute, execute, arguments, results, where, track);
}

std::shared_ptr<ProgramHere> make_program_here(const Platforms& platforms,
                                               const pjrt::Client& client, LoweredModule lowered,
                                               pjrt::LoadedExecutable executable,
                                               ChosenShardings chosen) {
  if (!is_joint(lowered, executable) && ProgramByDevice::is_faster(client, lowered, executable))
    return std::make_shared<ProgramByDevice>(platforms, client, std::move(lowered),
                                             std::move(executable), std::move(chosen));
  return std::make_shared<ProgramHere>(platforms, client, std::move(lowered), std::move(executable),
                                       std::move(chosen));
}

namespace {

// Launching device by device from one thread avoids the plugin's thread switches, about 50 us for 8
// devices. Each buffer costs the plugin about 0.4 us, which its own launch distributes over
// threads. Measured on 2 cores with 8 devices: device by device is faster with 20 parameters and 20
// results (120 us instead of 220), but not with 200 of each (1,350 us instead of 950).
constexpr std::size_t kMostBuffersDeviceByDevice = 128;
// Launching 8 parts with fewer arguments and results takes about as long as waking the helper.
constexpr std::size_t kLeastBuffersToShare = 16;
// Loading takes 0.1 ms for each kilobyte: 3 ms for 20 parameters, 29 ms for 200.
constexpr std::size_t kMostBytesOfParts = std::size_t{64} << 10;

std::size_t buffers_on_each(const pjrt::LoadedExecutable& program) {
  return program.parameter_count() + program.output_count();
}

}  // namespace

bool ProgramByDevice::is_faster(const pjrt::Client& client, const LoweredModule& lowered,
                                const pjrt::LoadedExecutable& executable) {
  if (executable.devices().size() == 1 || buffers_on_each(executable) > kMostBuffersDeviceByDevice)
    return false;
  if (executable.can_run_device_by_device()) return true;
  const pjrt::ExecutableSignature& signature = executable.signature();
  // The parts of a program that calls this process refer to its functions for all devices.
  return client.rules().loaded_parts_run_inline && !lowered.calls_host &&
         !signature.has_collectives && !signature.reads_partition_id;
}

ProgramByDevice::ProgramByDevice(const Platforms& platforms, pjrt::Client client,
                                 LoweredModule lowered, pjrt::LoadedExecutable executable,
                                 ChosenShardings chosen)
    : ProgramHere(platforms, std::move(client), std::move(lowered), std::move(executable),
                  std::move(chosen)),
      needs_parts_(!this->executable().can_run_device_by_device()) {}

void ProgramByDevice::set_from_bytes(std::string bytes) {
  ProgramHere::set_from_bytes({});
  std::lock_guard lock(loading_);
  if (needs_parts_ && bytes.size() <= kMostBytesOfParts)
    bytes_ = std::move(bytes);
  else
    left_ = -1;
}

const pjrt::LoadedExecutable* ProgramByDevice::count_and_load() const {
  if (left_.fetch_sub(1, std::memory_order_relaxed) > 0) return nullptr;
  // Other threads go on with the whole program while this one loads the parts.
  std::unique_lock lock(loading_, std::try_to_lock);
  if (!lock.owns_lock()) return nullptr;
  left_ = -1;
  if (loaded_) return &*loaded_;
  std::string bytes = std::exchange(bytes_, {});
  if (bytes.empty()) {
    Result<std::string> serialized = executable().executable().serialize();
    if (!serialized.ok() || serialized->size() > kMostBytesOfParts) return nullptr;
    bytes = *std::move(serialized);
  }
  Result<pjrt::LoadedExecutable> loaded =
      client().load_for_each(bytes, executable().signature(), executable().device_list());
  if (!loaded.ok()) return nullptr;  // a plugin that cannot load them launches the whole program
  internal::count(internal::counters().part_loads);
  loaded_.emplace(*std::move(loaded));
  parts_.store(&*loaded_, std::memory_order_release);
  return &*loaded_;
}

// Destroys released arrays on the way: their memory is used again if the same thread allocates
// next.
Result<pjrt::Launch> ProgramByDevice::launch_parts(const pjrt::LoadedExecutable& parts, Lists given,
                                                   Made made,
                                                   const pjrt::LaunchOptions& options) const {
  internal::ReleasedArrays& released = internal::ReleasedArrays::of_thread();
  pjrt::BufferBatch batch = released.take();
  const bool is_shared = buffers_on_each(parts) >= kLeastBuffersToShare;
  Result<pjrt::Launch> launch = ends_.ask(options, [&](const pjrt::LaunchOptions& asking) {
    if (!is_shared && batch.size() == 0) return parts.execute_each_device(given, made, asking);
    const auto each = [&](std::size_t count, const auto& launch_on) {
      const bool destroys = batch.devices() && batch.devices()->size() == count;
      const auto next = [&](std::size_t k) {
        if (destroys) batch.destroy_on(k);
        launch_on(k);
      };
      if (is_shared)
        internal::LaunchHelper::share(count, next);
      else
        for (std::size_t k = 0; k < count; ++k) next(k);
      if (destroys) batch.forget();
    };
    const pjrt::DeviceLoop loop(each);
    return parts.execute_each_device(given, made, asking, &loop);
  });
  batch.destroy();  // if it did not come to that
  released.give_back(batch);
  return launch;
}

Result<pjrt::Launch> ProgramByDevice::launch(Arrays arguments, std::span<Tensor> results,
                                             SourceLocation where, bool track) const {
  const auto together = [this](Lists given, Made made, const pjrt::LaunchOptions& options) {
    return launch_together(given, made, options);
  };
  const auto each = [&](Lists given, Made made, const pjrt::LaunchOptions& options) {
    if (!needs_parts_) {
      Result<pjrt::Launch> launch = executable().execute_each_device(given, made, options);
      internal::ReleasedArrays::of_thread().give_up();
      return launch;
    }
    const pjrt::LoadedExecutable* parts = parts_for_launch();
    return parts ? launch_parts(*parts, given, made, options) : together(given, made, options);
  };
  return launch_by(0, each, together, arguments, results, where, track);
}

}  // namespace meshard
