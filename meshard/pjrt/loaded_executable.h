// A compiled program on its devices, ready to run.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/executable_signature.h"
#include "meshard/pjrt/launch.h"

struct PJRT_LoadedExecutable;

namespace meshard::pjrt {

namespace internal {
struct LaunchSite;
}

/// Options of one launch.
struct LaunchOptions {
  /// Parameters that this launch must not consume although the program donates them, ascending.
  /// Their outputs go to fresh memory.
  std::span<const std::int64_t> keep = {};
  /// Whether the launch's completion is of interest to the caller: without it the handle is empty.
  bool track = true;
  /// The user's line, for errors and for reports of launches that do not end.
  SourceLocation where = {};
};

/// Outputs in the order of LoadedExecutable::execute, and the launch's completion.
struct LaunchResult {
  std::vector<Buffer> outputs;
  Launch launch;
};

/// Move-only owner of a loaded program. It may be destroyed while its launches run.
///
/// Device k below is number k of devices(): the order of the device assignment. Arguments and
/// outputs are device-major: argument i of device k is arguments[k * parameter_count() + i].
///
/// Every argument's type, device and liveness is checked before the plugin is called, and an error
/// found there consumes nothing. After a launch the donated arguments are dead. Programs on several
/// devices whose parts meet are launched in one order on all their devices, from any number of
/// threads; outputs can be given to the next launch at once.
class LoadedExecutable {
 public:
  LoadedExecutable(LoadedExecutable&& other) noexcept;
  LoadedExecutable& operator=(LoadedExecutable&& other) noexcept;
  ~LoadedExecutable();

  const Executable& executable() const { return executable_; }
  const ExecutableSignature& signature() const { return signature_; }
  std::span<const Device* const> devices() const { return devices_; }
  std::size_t parameter_count() const { return signature_.parameters.size(); }
  std::size_t output_count() const { return signature_.results.size(); }

  /// Runs on all devices. `outputs` has devices().size() * output_count() entries; what they held
  /// before is released.
  /// @error invalid argument, naming argument and device, if the arguments do not fit; failed
  /// precondition if an earlier error left the client unusable; else the plugin's error
  Result<Launch> execute(std::span<const Buffer* const> arguments, std::span<Buffer> outputs,
                         const LaunchOptions& options = {}) const;
  Result<LaunchResult> execute(std::span<const Buffer* const> arguments,
                               const LaunchOptions& options = {}) const;

  /// Runs on device number `device` alone, with that device's arguments and outputs.
  /// @error failed precondition if the program has collectives and the plugin could not run them so
  Result<Launch> execute_device(std::size_t device, std::span<const Buffer* const> arguments,
                                std::span<Buffer> outputs, const LaunchOptions& options = {}) const;

  /// Runs a program without collectives on all devices, one after another, from this thread: for
  /// small programs several times quicker than execute(). One launch.
  /// @error as execute_device
  Result<Launch> execute_each_device(std::span<const Buffer* const> arguments,
                                     std::span<Buffer> outputs,
                                     const LaunchOptions& options = {}) const;
  /// Whether execute_device and execute_each_device may be used.
  bool can_run_device_by_device() const;

  PJRT_LoadedExecutable* raw() const { return raw_; }

 private:
  friend class Client;
  struct Call;
  static Result<LoadedExecutable> make(ClientRef client, PJRT_LoadedExecutable* raw,
                                       const ExecutableSignature* signature);
  LoadedExecutable(ClientRef client, PJRT_LoadedExecutable* raw, Executable executable);
  Result<void> read_devices();
  Result<void> read_signature(const ExecutableSignature* signature);
  void release() noexcept;

  Result<Launch> run(Call& call) const;
  Result<Launch> enter(Call& call) const;
  internal::LaunchRecord* new_record(const Call& call) const;
  Result<void> check(const Call& call) const;
  Error explain(const Call& call, std::size_t device, std::size_t argument) const;
  Result<void> claim_donated(Call& call) const;
  void settle_donated(const Call& call) const;
  Result<void> enter_plugin(Call& call) const;
  std::string launched_before(const Call& call) const;

  ClientRef client_;
  PJRT_LoadedExecutable* raw_ = nullptr;
  Executable executable_;
  ExecutableSignature signature_;
  std::vector<const Device*> devices_;
  std::shared_ptr<const internal::LaunchSite> site_;
  std::vector<const ArrayType*> parameter_types_;  // interned
  std::vector<const ArrayType*> result_types_;     // interned
};

}  // namespace meshard::pjrt
