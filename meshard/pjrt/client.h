// A client: a running instance of a plugin, with its devices.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/array_type.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/compile_options.h"
#include "meshard/pjrt/device.h"
#include "meshard/pjrt/launch_rules.h"
#include "meshard/pjrt/named_value.h"
#include "meshard/pjrt/plugin.h"
#include "meshard/pjrt/run_rules.h"

struct PJRT_Client;

namespace meshard::pjrt {

class LoadedExecutable;
class HostToDeviceTransfer;
struct ExecutableSignature;

/// Who may use the host's bytes, and until when. The values equal PJRT_HostBufferSemantics'.
enum class HostSemantics : int {
  /// Copied before the call returns.
  kImmutableOnlyDuringCall = 0,
  /// Must not change until SentBuffer::host_released.
  kImmutableUntilTransferCompletes = 1,
  /// May be used in place. Must not change until host_released, which completes after the buffer is
  /// destroyed.
  kImmutableZeroCopy = 2,
  /// May be used in place, and written when the buffer is donated. Never pass the same block to two
  /// buffers.
  kMutableZeroCopy = 3,
};

/// A view of an array in host memory.
struct HostArrayView {
  const void* data = nullptr;
  ElementType element = ElementType::kInvalid;
  std::span<const std::int64_t> dimensions;
  /// Byte stride of each dimension; empty: dense, row-major.
  std::span<const std::int64_t> byte_strides = {};
};

/// A buffer that is being sent to a device, and the event that releases the host's bytes.
struct SentBuffer {
  Buffer buffer;
  Event host_released;
};

/// Shared handle on a client; cheap to copy. The client is destroyed with the last handle, buffer,
/// executable or event that refers to it. Thread-safe. Use one client per plugin and process:
/// several clients of the CPU plugin compete for cores.
class Client {
 public:
  /// Creates a client, which the process calls `name`. An empty name means the plugin's name for
  /// its platform. `run`, if not null: the plugin has only the devices of this process, and the
  /// client also has those of the others. `store`, if not null: where a plugin that supports
  /// several processes exchanges data with the plugins of the other processes; the client keeps it.
  /// @error invalid argument for options that check_client_options rejects; failed precondition if
  /// the client has no devices; invalid argument if `run` has another number of devices for this
  /// process than the plugin, and for a text in MESHARD_QUIRKS that quirks_of() rejects; otherwise
  /// the plugin's error
  static Result<Client> create(Plugin plugin, std::span<const NamedValue> options = {},
                               std::span<const ClientOptionSpec> more_options = {},
                               std::string_view name = {}, const ProcessDevices* run = nullptr,
                               std::shared_ptr<KeyValueStore> store = nullptr);

  const Plugin& plugin() const;
  /// `cpu`, `tpu`, `cuda`, ... in lower case.
  const std::string& platform() const;
  /// The process's name for the platform: the name that was passed to create(), otherwise
  /// platform().
  const std::string& name() const;
  const std::string& platform_version() const;
  int process_index() const;
  /// The quirks that count for programs of this client, as MESHARD_QUIRKS was when it was created.
  QuirkSet quirks() const;
  const LaunchRules& rules() const;

  /// The number of devices of all processes. device() indexes them in the plugin's order.
  std::size_t device_count() const;
  const Device& device(std::size_t index) const;
  /// The devices of this process, in the plugin's order.
  std::span<const Device* const> addressable_devices() const;
  /// The device with this id, or null.
  const Device* find_device(std::int64_t id) const;
  /// These devices of the client, in this order. One object for equal lists.
  const DeviceList& device_list(std::span<const Device* const> devices) const;

  /// Compiles a StableHLO module (text, bytecode or a portable artifact).
  /// @pre no tensor type in `module` has more than 2^63 - 1 elements; such a type makes some
  /// plugins abort the process
  /// @error invalid argument if `options` are invalid or name devices that the client lacks;
  /// otherwise the plugin's error
  Result<LoadedExecutable> compile(std::string_view module, const CompileOptions& options) const;

  /// Compiles an HLO module: the bytes of a HloModuleProto.
  /// @pre the module is valid HLO; some plugins end the process for other modules
  /// @error as compile()
  Result<LoadedExecutable> compile_hlo(std::string_view module,
                                       const CompileOptions& options) const;

  /// Loads the output of Executable::serialize. `options` replace those of the compilation: pass
  /// another device assignment to run the same program elsewhere. A known `signature`, for example
  /// from a cache, avoids reading the compiled module.
  Result<LoadedExecutable> deserialize_and_load(
      std::string_view serialized, const CompileOptions* options = nullptr,
      const ExecutableSignature* signature = nullptr) const;

  /// Loads the output of Executable::serialize, of a program for several devices, as a program of
  /// its own for each of `devices`: a launch starts one after the other, and none waits for
  /// another. `signature` is the program's.
  /// @error failed precondition if the program has collectives or reads the partition id; otherwise
  /// the plugin's error
  Result<LoadedExecutable> load_for_each(std::string_view serialized,
                                         const ExecutableSignature& signature,
                                         const DeviceList& devices) const;

  /// Sends an array to a device, or to one of its memories.
  /// @error invalid argument for null data, an invalid type, or strides of another rank
  Result<SentBuffer> buffer_from_host(const HostArrayView& array, HostSemantics semantics,
                                      const Device& device, const Memory* memory = nullptr) const;

  /// Creates a buffer with unspecified contents.
  Result<Buffer> uninitialized_buffer(const ArrayType& type, const Device& device) const;

  /// Creates a buffer in device memory that the caller owns. `on_release` is called after the
  /// buffer is destroyed. Donating the buffer does not write to that memory.
  /// @pre `address` is valid device memory of the type's size, aligned to 64 bytes on the CPU
  Result<Buffer> view_device_memory(void* address, const ArrayType& type, const Device& device,
                                    std::function<void()> on_release) const;

  /// Begins to transfer several buffers in pieces (host_to_device_transfer.h).
  Result<HostToDeviceTransfer> begin_transfer(std::span<const ArrayType> types,
                                              const Device& device) const;

  /// Number of tracked launches that have not completed.
  std::size_t launches_in_flight() const;
  /// Waits until all launches have completed. Their errors are reported to the holders of the
  /// launches.
  void await_launches() const;
  /// Called by the thread that ends the process: waits for the launches, and prevents other threads
  /// from starting work.
  void await_last_launches() const;
  /// Waits for the launches that have failed on some device. Waits at most one second for the other
  /// devices of each.
  void await_failed_launches() const;
  /// True after a failure that prevents further launches on several devices. The cause is a failed
  /// launch on several devices in a plugin that then completes no further ones
  /// (rules().error_wedges_client). Create a new client.
  bool is_wedged() const;

  PJRT_Client* raw() const;
  const ClientRef& ref() const { return state_; }
  friend bool operator==(const Client&, const Client&) = default;

 private:
  explicit Client(ClientRef state) : state_(std::move(state)) {}
  Result<void> check_options(const CompileOptions& options) const;
  Result<void> use_plugin_ids(std::vector<int>& device_assignment) const;
  Result<LoadedExecutable> compile_program(std::string_view module, std::string_view format,
                                           const CompileOptions& options) const;
  Result<std::string> complete_options(const CompileOptions& options) const;
  Result<const Device*> check_device(const Device& device, std::string_view operation) const;
  Buffer make_buffer(PJRT_Buffer* raw, const ArrayType& type, const Device* device) const;
  ClientRef state_;
};

/// Returns after every callback that was already due (Event::on_ready, releases of borrowed memory)
/// has finished. @pre not called from such a callback
void finish_callbacks();

}  // namespace meshard::pjrt
