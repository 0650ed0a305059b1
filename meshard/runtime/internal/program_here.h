// Programs that one call of the plugin launches on the devices of this process.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
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
  /// @param bytes those that it was loaded from
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

}  // namespace meshard
