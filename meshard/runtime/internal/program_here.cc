// Tested in meshard/runtime/loaded_program_test.cc.
#include "meshard/runtime/internal/program_here.h"

#include <climits>
#include <utility>

#include "meshard/runtime/internal/launch_program.h"
#include "meshard/runtime/internal/program_by_device.h"

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

}  // namespace meshard
