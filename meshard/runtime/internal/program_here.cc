// Tested in meshard/runtime/loaded_program_test.cc.
#include "meshard/runtime/internal/program_here.h"

#include <climits>
#include <utility>
#include <vector>

#include "meshard/runtime/internal/launch_program.h"

namespace meshard {
namespace {

// Launching device by device from one thread avoids the plugin's thread switches, about 50 us for 8
// devices. Each buffer costs the plugin about 0.4 us, which its own launch distributes over
// threads. Measured on 2 cores with 8 devices: device by device is faster with 20 parameters and 20
// results (120 us instead of 220), but not with 200 of each (1,350 us instead of 950).
constexpr std::size_t kMostBuffersDeviceByDevice = 128;

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
    return executable().execute(given, made, options);
  };
  return launch_by(next_launch_id(), execute, execute, arguments, results, where, track);
}

ProgramByDevice::ProgramByDevice(const Platforms& platforms, pjrt::Client client,
                                 LoweredModule lowered, pjrt::LoadedExecutable executable,
                                 ChosenShardings chosen)
    : ProgramHere(platforms, std::move(client), std::move(lowered), std::move(executable),
                  std::move(chosen)) {
  if (!this->executable().can_run_device_by_device())
    parts_ = std::make_unique<LoadedParts>(this->client(), this->executable());
}

void ProgramByDevice::set_from_bytes(std::string bytes) {
  ProgramHere::set_from_bytes({});
  if (parts_) parts_->set_bytes(std::move(bytes));
}

Result<pjrt::Launch> ProgramByDevice::launch(Arrays arguments, std::span<Tensor> results,
                                             SourceLocation where, bool track) const {
  const auto together = [this](Lists given, Made made, const pjrt::LaunchOptions& options) {
    return executable().execute(given, made, options);
  };
  const auto each = [&](Lists given, Made made, const pjrt::LaunchOptions& options) {
    const pjrt::LoadedExecutable* parts = parts_ ? parts_->for_launch() : &executable();
    return parts ? parts->execute_each_device(given, made, options)
                 : together(given, made, options);
  };
  return launch_by(0, each, together, arguments, results, where, track);
}

std::shared_ptr<ProgramHere> make_program_here(const Platforms& platforms,
                                               const pjrt::Client& client, LoweredModule lowered,
                                               pjrt::LoadedExecutable executable,
                                               ChosenShardings chosen) {
  const bool is_small =
      executable.parameter_count() + executable.output_count() <= kMostBuffersDeviceByDevice;
  if (is_small && executable.devices().size() > 1 && !is_joint(lowered, executable) &&
      (executable.can_run_device_by_device() ||
       LoadedParts::are_worth_loading(client, lowered, executable)))
    return std::make_shared<ProgramByDevice>(platforms, client, std::move(lowered),
                                             std::move(executable), std::move(chosen));
  return std::make_shared<ProgramHere>(platforms, client, std::move(lowered), std::move(executable),
                                       std::move(chosen));
}

}  // namespace meshard
