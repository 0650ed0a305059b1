// A small program without collectives, loaded once more as a program for each of its devices.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "meshard/lowering/lower.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/loaded_executable.h"

namespace meshard {

/// The parts of a program that is launched often. The CPU plugin starts the parts of a program for
/// several devices together, in threads of its own, which takes 50 to 100 us for 8 devices. The
/// same parts as programs for one device each run in the calling thread if they are small: 15 to 20
/// us for two parameters (pjrt::LaunchRules::loaded_parts_run_inline).
///
/// Loading them takes about as long as this saves in kLaunchesBefore launches, so they are loaded
/// then.
class LoadedParts {
 public:
  static constexpr std::int32_t kLaunchesBefore = 32;

  /// Whether loading the parts of a program makes its launches faster.
  static bool are_worth_loading(const pjrt::Client& client, const LoweredModule& lowered,
                                const pjrt::LoadedExecutable& program);

  /// @param program must outlive this object
  /// @pre are_worth_loading()
  LoadedParts(const pjrt::Client& client, const pjrt::LoadedExecutable& program)
      : client_(client), whole_(program) {}

  /// The bytes that `whole` was loaded from, if it was not compiled in this process: the plugin
  /// cannot serialize it then.
  /// @pre no launch was made
  void set_bytes(std::string bytes);

  /// The program for the next launch: the parts, or null as long as `whole` is to be launched.
  const pjrt::LoadedExecutable* for_launch() const {
    if (const pjrt::LoadedExecutable* parts = parts_.load(std::memory_order_acquire)) return parts;
    return are_wanted() ? count_and_load() : nullptr;
  }

 private:
  // Whether the parts will be loaded, unless the plugin refuses.
  bool are_wanted() const { return left_.load(std::memory_order_relaxed) >= 0; }
  const pjrt::LoadedExecutable* count_and_load() const;

  pjrt::Client client_;
  const pjrt::LoadedExecutable& whole_;
  // Launches before the parts are loaded; -1: never.
  mutable std::atomic<std::int32_t> left_{kLaunchesBefore};
  mutable std::mutex loading_;
  mutable std::string bytes_;                             // guarded by loading_
  mutable std::optional<pjrt::LoadedExecutable> loaded_;  // guarded by loading_
  mutable std::atomic<const pjrt::LoadedExecutable*> parts_{nullptr};
};

}  // namespace meshard
