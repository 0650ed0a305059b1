// A client: one plugin's hold on its devices.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/array_type.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/client_options.h"
#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/compile_options.h"
#include "meshard/pjrt/device.h"
#include "meshard/pjrt/launch_rules.h"
#include "meshard/pjrt/plugin.h"

struct PJRT_Client;

namespace meshard::pjrt {

class LoadedExecutable;
class HostToDeviceTransfer;
struct ExecutableSignature;

/// Who may touch the host's bytes, and until when. The numbers are PJRT_HostBufferSemantics'.
enum class HostSemantics : int {
  /// Copied before the call returns.
  kImmutableOnlyDuringCall = 0,
  /// Not changed until SentBuffer::host_released.
  kImmutableUntilTransferCompletes = 1,
  /// May be used in place: not changed until host_released, which comes when the buffer is gone.
  kImmutableZeroCopy = 2,
  /// May be used in place and written, when the buffer is donated. Never give one block to two
  /// buffers.
  kMutableZeroCopy = 3,
};

/// A view of an array in host memory.
struct HostArrayView {
  const void* data = nullptr;
  ElementType element = ElementType::kInvalid;
  std::span<const std::int64_t> dimensions;
  /// Bytes from one element to the next along each dimension; empty: dense, row-major.
  std::span<const std::int64_t> byte_strides = {};
};

/// A buffer on its way to a device, and when the host's bytes are free again.
struct SentBuffer {
  Buffer buffer;
  Event host_released;
};

/// Shared handle on a client; cheap to copy. The client ends with the last handle, buffer,
/// executable and event of it. Safe to use from several threads. Use one client per plugin and
/// process: clients of the CPU plugin compete for cores.
class Client {
 public:
  /// Makes a client, which the process calls `name`; empty: as the plugin calls its platform.
  /// @error invalid argument for options that check_client_options refuses; failed precondition if
  /// the client has no devices; else the plugin's error
  static Result<Client> create(Plugin plugin, std::span<const NamedValue> options = {},
                               std::span<const ClientOptionSpec> more_options = {},
                               std::string_view name = {});

  const Plugin& plugin() const;
  /// `cpu`, `tpu`, `cuda`, ... in lower case.
  const std::string& platform() const;
  /// What the process calls the platform: the name that create() was given, else platform().
  const std::string& name() const;
  const std::string& platform_version() const;
  int process_index() const;
  const LaunchRules& rules() const;

  /// Every device of every process, in the plugin's order.
  std::size_t device_count() const;
  const Device& device(std::size_t index) const;
  /// The devices of this process, in the plugin's order.
  std::span<const Device* const> addressable_devices() const;
  /// The device with this id, or null.
  const Device* find_device(std::int64_t id) const;

  /// Compiles a StableHLO module (text, bytecode or a portable artifact).
  /// @pre no tensor type in `module` has more than 2^63 - 1 elements: some plugins end the process
  /// @error invalid argument if `options` are unsound or name devices the client lacks; else the
  /// plugin's
  Result<LoadedExecutable> compile(std::string_view module, const CompileOptions& options) const;

  /// Loads what Executable::serialize wrote. `options` replace those of the compile: give another
  /// device assignment to run the same program elsewhere. `signature` spares reading the compiled
  /// module if it is known, as a cache knows it.
  Result<LoadedExecutable> deserialize_and_load(
      std::string_view serialized, const CompileOptions* options = nullptr,
      const ExecutableSignature* signature = nullptr) const;

  /// Sends an array to a device, or to one memory of it.
  /// @error invalid argument for no data, an unsound type, or strides of another rank
  Result<SentBuffer> buffer_from_host(const HostArrayView& array, HostSemantics semantics,
                                      const Device& device, const Memory* memory = nullptr) const;

  /// A buffer whose contents are whatever the memory held.
  Result<Buffer> uninitialized_buffer(const ArrayType& type, const Device& device) const;

  /// A buffer that uses memory of the device which somebody else owns; `on_release` is called when
  /// the buffer is gone. Donating it does not write to that memory.
  /// @pre `address` is valid device memory of the type's size, aligned to 64 bytes on the CPU
  Result<Buffer> view_device_memory(void* address, const ArrayType& type, const Device& device,
                                    std::function<void()> on_release) const;

  /// Begins a transfer of several buffers in pieces (host_to_device_transfer.h).
  Result<HostToDeviceTransfer> begin_transfer(std::span<const ArrayType> types,
                                              const Device& device) const;

  /// Launches that are under way, as far as they are tracked.
  std::size_t launches_in_flight() const;
  /// Waits until all of them are through; their errors are for those who hold the launches.
  void await_launches() const;
  /// The process ends in this thread: waits for them, and other threads start no work any more.
  void await_last_launches() const;
  /// Waits for the launches that have failed on some device: at most a second for the others.
  void await_failed_launches() const;
  /// True after a launch on several devices failed inside a plugin that then completes no further
  /// ones (rules().error_wedges_client): make a new client.
  bool is_wedged() const;

  PJRT_Client* raw() const;
  const ClientRef& ref() const { return state_; }
  friend bool operator==(const Client&, const Client&) = default;

 private:
  explicit Client(ClientRef state) : state_(std::move(state)) {}
  Result<void> check_options(const CompileOptions& options) const;
  Result<std::string> complete_options(const CompileOptions& options) const;
  Result<const Device*> check_device(const Device& device, std::string_view operation) const;
  Buffer make_buffer(PJRT_Buffer* raw, const ArrayType& type, const Device* device) const;
  ClientRef state_;
};

/// Returns when every callback that was due before (Event::on_ready, releases of borrowed memory)
/// is through. @pre not in such a callback
void finish_callbacks();

}  // namespace meshard::pjrt
