// A compiled program, loaded on its devices and ready to run.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/buffer_list.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/launch.h"

struct PJRT_LoadedExecutable;

namespace meshard::pjrt {

namespace internal {
struct LaunchSite;
}

/// Move-only owner of a loaded program. It may be destroyed while its launches run.
///
/// Below, device k is devices()[k], in the order of the device assignment. Arguments and outputs
/// are one BufferList for each parameter and output.
///
/// The type, device and liveness of every argument are checked before the plugin is called, and an
/// error from these checks consumes nothing. After a launch, the donated arguments are dead.
/// Programs whose devices wait for each other are launched in the same order on all devices, from
/// any number of threads. Outputs can be passed to the next launch immediately.
class LoadedExecutable {
 public:
  LoadedExecutable(LoadedExecutable&&) noexcept = default;
  LoadedExecutable& operator=(LoadedExecutable&&) noexcept = default;

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

  /// Runs a program for one device on buffers whose owners may have further buffers, such as one
  /// shard of a list. `outputs` has output_count() entries.
  /// @pre the owners of the arguments are neither moved nor destroyed during the call
  /// @error failed precondition if the program runs on several devices, or consumes arguments; as
  /// execute
  Result<Launch> execute_on_views(std::span<const BufferView> arguments, std::span<Buffer> outputs,
                                  const LaunchOptions& options = {}) const;

  /// Runs a program without collectives on each device by a call of its own, by default one after
  /// the other from this thread. For small programs this is several times faster than execute(). It
  /// counts as one launch.
  /// @error as execute; failed precondition unless can_run_device_by_device()
  Result<Launch> execute_each_device(std::span<const BufferList* const> arguments,
                                     std::span<BufferList> outputs,
                                     const LaunchOptions& options = {},
                                     const DeviceLoop* loop = nullptr) const;
  /// Whether execute_each_device is allowed.
  bool can_run_device_by_device() const;

  PJRT_LoadedExecutable* raw() const { return own_.raw; }

 private:
  friend class Client;
  struct Call;
  struct Borrowed;
  // Device k has buffer order[k] of a list over the program's devices in another order.
  struct DeviceOrder {
    DeviceOrder(const DeviceList* list, std::vector<std::uint32_t> positions)
        : of(list), order(std::move(positions)) {}
    const DeviceList* of;
    std::vector<std::uint32_t> order;
  };
  static Result<LoadedExecutable> make(ClientRef client, PJRT_LoadedExecutable* raw,
                                       const ExecutableSignature* signature);
  LoadedExecutable(ClientRef client, PJRT_LoadedExecutable* raw);
  Result<void> read_devices();
  void set_devices(const DeviceList& devices);
  // @post the program, which is portable, runs on each of `devices`
  void set_parts(const DeviceList& devices);
  Result<void> read_signature(const ExecutableSignature* signature);

  // Of launch.cc.
  inline Result<Launch> run(Call& call) const;
  inline Result<Launch> enter(Call& call) const;
  inline Result<void> enter_plugin(Call& call) const;
  inline internal::LaunchRecord* new_record(const Call& call, internal::LaunchRecord* record) const;
  Result<void> check(const Call& call) const;
  Result<void> take_arguments(const Call& call) const;
  const DeviceOrder* order_of(const DeviceList& list) const;
  Error explain(const Call& call, std::size_t argument) const;
  Result<void> claim_donated(Call& call) const;
  void settle_donated(const Call& call) const;
  void give_outputs(const Call& call) const;
  Result<void> enter_on(const Call& call, std::size_t k) const;
  Result<void> enter_each(Call& call) const;
  std::string launched_on(const Call& call) const;

  internal::Owned<PJRT_LoadedExecutable> own_;
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
};

}  // namespace meshard::pjrt
