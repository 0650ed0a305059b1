// Programs that one call of the plugin launches on the devices of this process.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "meshard/runtime/loaded_program.h"

namespace meshard {

/// A program that one call of the plugin launches on the devices of this process. It may run on
/// devices of others too, if the plugin connects the processes.
class ProgramHere : public LoadedProgram {
 public:
  /// @pre `platforms` owns the client
  ProgramHere(const Platforms& platforms, pjrt::Client client, LoweredModule lowered,
              pjrt::LoadedExecutable executable, ChosenShardings chosen);
  Result<pjrt::Launch> launch(Arrays arguments, std::span<Tensor> results, SourceLocation where,
                              bool track = false) const override;
  bool is_from_bytes() const override { return is_from_bytes_; }
  /// @param bytes the serialized program that it was loaded from
  /// @pre it was not launched yet
  virtual void set_from_bytes(std::string) { is_from_bytes_ = true; }

 protected:
  // The launch by one call of the plugin.
  inline Result<pjrt::Launch> launch_together(Lists given, Made made,
                                              const pjrt::LaunchOptions& options) const;

 private:
  // For LaunchOptions.
  int next_launch_id() const;

  // Launch ids that are equal in all processes: a number for the program, and a count. 0: the
  // program runs in this process only.
  std::uint32_t launch_base_ = 0;
  mutable std::atomic<std::uint32_t> next_launch_{0};
  bool is_from_bytes_ = false;
};

/// The program as the kind that is launched fastest.
std::shared_ptr<ProgramHere> make_program_here(const Platforms& platforms,
                                               const pjrt::Client& client, LoweredModule lowered,
                                               pjrt::LoadedExecutable executable,
                                               ChosenShardings chosen);

// The fast path for small programs on virtual CPUs: they are launched device by device.

/// A small program without collectives on several devices. The CPU plugin starts the parts of a
/// program for several devices together, in threads of its own, which takes 50 to 100 us for 8
/// devices. The same parts as programs for one device each run in the calling thread if they are
/// small: 15 to 20 us for two parameters (pjrt::LaunchRules::loaded_parts_run_inline). So such a
/// program is loaded once more, as a program for each device. Loading takes about as long as this
/// saves in kLaunchesBefore launches, so it happens then. If there are many buffers, two threads
/// share the launches (launch_helper.h).
class ProgramByDevice final : public ProgramHere {
 public:
  static constexpr std::int32_t kLaunchesBefore = 32;

  /// Whether launching the program device by device is faster.
  static bool is_faster(const pjrt::Client& client, const LoweredModule& lowered,
                        const pjrt::LoadedExecutable& executable);

  /// @pre is_faster(); the devices are of this process
  ProgramByDevice(const Platforms& platforms, pjrt::Client client, LoweredModule lowered,
                  pjrt::LoadedExecutable executable, ChosenShardings chosen);
  Result<pjrt::Launch> launch(Arrays arguments, std::span<Tensor> results, SourceLocation where,
                              bool track = false) const override;
  /// The plugin cannot serialize such a program, so the parts are loaded from these bytes.
  void set_from_bytes(std::string bytes) override;

 private:
  Result<pjrt::Launch> launch_parts(const pjrt::LoadedExecutable& parts, Lists given, Made made,
                                    const pjrt::LaunchOptions& options) const;
  // The parts, or null as long as the whole program is to be launched.
  const pjrt::LoadedExecutable* parts_for_launch() const {
    if (const pjrt::LoadedExecutable* parts = parts_.load(std::memory_order_acquire)) return parts;
    return are_wanted() ? count_and_load() : nullptr;
  }
  // Whether to load the parts after enough calls; false if the plugin refused.
  bool are_wanted() const { return left_.load(std::memory_order_relaxed) >= 0; }
  const pjrt::LoadedExecutable* count_and_load() const;

  const bool needs_parts_;  // otherwise the plugin launches the whole program device by device
  // Launches before the parts are loaded; -1: never.
  mutable std::atomic<std::int32_t> left_{kLaunchesBefore};
  mutable std::mutex loading_;
  mutable std::string bytes_;                             // guarded by loading_
  mutable std::optional<pjrt::LoadedExecutable> loaded_;  // guarded by loading_
  mutable std::atomic<const pjrt::LoadedExecutable*> parts_{nullptr};
};

}  // namespace meshard
