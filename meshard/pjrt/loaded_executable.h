// A compiled program, loaded on its devices and ready to run.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/buffer_list.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/executable_signature.h"
#include "meshard/pjrt/launch.h"

struct PJRT_LoadedExecutable;

namespace meshard::pjrt {

namespace internal {
struct LaunchSite;
}

/// The outputs, in the order of LoadedExecutable::execute, and the launch's completion.
struct LaunchResult {
  std::vector<Buffer> outputs;
  Launch launch;
};

/// Move-only owner of a loaded program. It may be destroyed while its launches run.
///
/// Below, device k is devices()[k], in the order of the device assignment. Arguments and outputs
/// are either one BufferList for each parameter and output, or single buffers in device-major
/// order: argument i of device k is arguments[k * parameter_count() + i].
///
/// The type, device and liveness of every argument are checked before the plugin is called, and an
/// error from these checks consumes nothing. After a launch, the donated arguments are dead.
/// Programs whose devices wait for each other are launched in the same order on all devices, from
/// any number of threads. Outputs can be passed to the next launch immediately.
class LoadedExecutable {
 public:
  LoadedExecutable(LoadedExecutable&& other) noexcept;
  LoadedExecutable& operator=(LoadedExecutable&& other) noexcept;
  ~LoadedExecutable();

  const Executable& executable() const { return executable_; }
  const ExecutableSignature& signature() const { return signature_; }
  /// The interface_bytes() of the optimized program, moved out: a second call reads the program
  /// again, which takes the plugin up to a second for large ones.
  /// @error the plugin's
  Result<std::string> take_interface();
  std::span<const Device* const> devices() const { return devices_->devices(); }
  const DeviceList& device_list() const { return *devices_; }
  std::size_t parameter_count() const { return signature_.parameters.size(); }
  std::size_t output_count() const { return signature_.results.size(); }

  /// Runs on all devices. `arguments` has parameter_count() lists over these devices, in any order
  /// of the devices; `outputs` has output_count() entries, whose previous contents are released,
  /// and receives lists in the order of devices(). Checking an argument takes the same time for any
  /// number of devices.
  /// @error invalid argument, naming argument and device, if the arguments do not fit; failed
  /// precondition if an earlier error made the client unusable; otherwise the plugin's error
  Result<Launch> execute(std::span<const BufferList* const> arguments,
                         std::span<BufferList> outputs, const LaunchOptions& options = {}) const;
  /// The same with single buffers. `outputs` has devices().size() * output_count() entries.
  Result<Launch> execute(std::span<const Buffer* const> arguments, std::span<Buffer> outputs,
                         const LaunchOptions& options = {}) const;
  Result<LaunchResult> execute(std::span<const Buffer* const> arguments,
                               const LaunchOptions& options = {}) const;

  /// Runs a program for one device on buffers whose owners may have others besides, such as one
  /// shard of a list. `outputs` has output_count() entries.
  /// @pre the owners of the arguments are neither moved nor destroyed during the call
  /// @error failed precondition if the program runs on several devices, or consumes arguments; as
  /// execute
  Result<Launch> execute_on_views(std::span<const BufferView> arguments, std::span<Buffer> outputs,
                                  const LaunchOptions& options = {}) const;

  /// Runs on device `device` only, with that device's arguments and outputs.
  /// @error failed precondition if the program has collectives and the plugin cannot run them this
  /// way
  Result<Launch> execute_device(std::size_t device, std::span<const Buffer* const> arguments,
                                std::span<Buffer> outputs, const LaunchOptions& options = {}) const;

  /// Runs a program without collectives on each device in turn, from this thread. For small
  /// programs this is several times faster than execute(). It counts as one launch.
  /// @error as execute_device
  Result<Launch> execute_each_device(std::span<const BufferList* const> arguments,
                                     std::span<BufferList> outputs,
                                     const LaunchOptions& options = {}) const;
  Result<Launch> execute_each_device(std::span<const Buffer* const> arguments,
                                     std::span<Buffer> outputs,
                                     const LaunchOptions& options = {}) const;
  /// Whether execute_device and execute_each_device are allowed.
  bool can_run_device_by_device() const;

  PJRT_LoadedExecutable* raw() const { return raw_; }

 private:
  friend class Client;
  struct Call;
  // Device k has buffer order[k] of a list over the program's devices in another order.
  struct DeviceOrder {
    DeviceOrder(const DeviceList* list, std::vector<std::uint32_t> positions)
        : of(list), order(std::move(positions)) {}
    const DeviceList* of;
    std::vector<std::uint32_t> order;
  };
  static Result<LoadedExecutable> make(ClientRef client, PJRT_LoadedExecutable* raw,
                                       const ExecutableSignature* signature);
  LoadedExecutable(ClientRef client, PJRT_LoadedExecutable* raw, Executable executable);
  Result<void> read_devices();
  void set_devices(const DeviceList& devices);
  // @post the program, which is portable, runs on each of `devices`
  void set_parts(const DeviceList& devices);
  Result<void> read_signature(const ExecutableSignature* signature);
  void release() noexcept;

  Result<Launch> run(Call& call) const;
  // Defined in launch.cc, which alone uses them.
  inline Result<Launch> run_inline(Call& call) const;
  inline Result<Launch> enter(Call& call) const;
  inline Result<void> enter_plugin(Call& call) const;
  inline internal::LaunchRecord* new_record(const Call& call, internal::LaunchRecord* record) const;

  Result<void> check(const Call& call) const;
  Result<void> check_sizes(const Call& call) const;
  Result<void> take_buffers(const Call& call) const;
  Result<void> take_lists(const Call& call) const;
  Result<void> take_views(const Call& call) const;
  const DeviceOrder* order_of(const DeviceList& list) const;
  Error explain(const Call& call, std::size_t device, std::size_t argument,
                const BufferView* buffer) const;
  Error explain_list(const Call& call, std::size_t argument) const;
  Result<void> claim_donated(Call& call) const;
  void settle_donated(const Call& call) const;
  void give_outputs(const Call& call) const;
  bool ran_at_once(const internal::LaunchRecord& record) const;
  Result<void> enter_on(const Call& call, std::size_t k) const;
  Result<void> enter_each(Call& call) const;
  std::string launched_on(const Call& call) const;
  const Device& device(const Call& call, std::size_t k) const;

  ClientRef client_;
  PJRT_LoadedExecutable* raw_ = nullptr;
  Executable executable_;
  ExecutableSignature signature_;
  std::string interface_;                // until it is taken; empty if the signature was known
  const DeviceList* devices_ = nullptr;  // interned
  bool is_portable_ = false;             // each launch names its device
  std::shared_ptr<const internal::LaunchSite> site_;
  std::vector<const ArrayType*> parameter_types_;  // interned
  std::vector<const ArrayType*> result_types_;     // interned
  std::vector<std::size_t> result_sizes_;          // in bytes, on each device
  std::int64_t result_bytes_ = 0;                  // their sum
  mutable std::deque<DeviceOrder> orders_;         // guarded by the client's launch lock
  // How many launches in a row were not over at once, up to a limit.
  mutable std::atomic<std::uint8_t> launches_late_{0};
};

}  // namespace meshard::pjrt
