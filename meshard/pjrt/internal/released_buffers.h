// Delays the destruction of small buffers for a moment.
#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "meshard/pjrt/buffer_list.h"

namespace meshard::pjrt::internal {

/// Buffers of several arrays on the same devices that nobody uses any more, and one reference to
/// the client for each array.
struct ReleasedBatch {
  ClientState* client = nullptr;
  const DeviceList* devices = nullptr;
  std::vector<PJRT_Buffer*> buffers;  // array by array
  std::size_t bytes = 0;              // still counted as live

  ReleasedBatch() = default;
  ReleasedBatch(ReleasedBatch&& other) noexcept
      : client(other.client),
        devices(std::exchange(other.devices, nullptr)),
        buffers(std::exchange(other.buffers, {})),
        bytes(std::exchange(other.bytes, 0)) {}
  ReleasedBatch& operator=(ReleasedBatch&& other) noexcept {
    client = other.client;
    devices = std::exchange(other.devices, nullptr);
    buffers = std::exchange(other.buffers, {});
    bytes = std::exchange(other.bytes, 0);
    return *this;
  }

  /// The number of devices; 0 if it is empty.
  std::size_t device_count() const { return devices ? devices->size() : 0; }
  /// Destroys the buffers on a device. Several threads may do so, for different devices.
  void destroy_on(std::size_t device) const noexcept;
  /// Drops the references. @pre destroy_on() was called for each device @post it is empty
  void forget() noexcept;
  /// Destroys the buffers and drops the references. @post it is empty
  void destroy() noexcept;
};

/// Buffers that this thread has dropped and that are not destroyed yet. The plugin makes the
/// outputs of a launch device by device, but tensors are dropped array by array. Destroying many
/// small buffers in the plugin's order visits its objects in the order of their addresses, which
/// takes half of the time.
class ReleasedBuffers {
 public:
  /// Those of this thread. They are destroyed during its next launch, while the devices work, or,
  /// if there are few, during a later one; before it waits or reads statistics; and when it ends.
  static ReleasedBuffers& of_thread();
  ~ReleasedBuffers() { batch_.destroy(); }

  /// Whether buffers of `bytes` bytes on each of `devices` devices are worth the delay.
  static bool takes(std::size_t bytes, std::size_t devices) {
    return devices > 1 && bytes <= kMostBytesEach;
  }
  /// Takes ownership of the buffers of one array, and of a reference to the client that is already
  /// counted. `bytes` of each are counted as live until it is destroyed.
  void add(ClientState* client, const DeviceList& devices, std::span<PJRT_Buffer* const> buffers,
           std::size_t bytes);
  /// Lets the release thread destroy them if they are many. If they are few, they stay until there
  /// are more. If they are dead already or the thread does not exist, the caller destroys them.
  void give_up() noexcept;
  /// Gives them to the caller, if they are as many as give_up() gives away.
  ReleasedBatch take();
  /// Memory of a batch that was taken, to be used again. @pre the batch is empty
  void give_back(ReleasedBatch& batch) noexcept { spare_ = std::move(batch.buffers); }
  /// Destroys them. @post those that threads gave up before are destroyed, too
  void destroy() noexcept;

 private:
  // Whether they are not worth keeping for a later launch.
  bool is_due() const;

  static constexpr std::size_t kMostBytesEach = 1 << 12;
  static constexpr std::size_t kMostBytes = 1 << 20;
  static constexpr std::size_t kMostArrays = 1 << 11;

  ReleasedBatch batch_;
  std::vector<PJRT_Buffer*> spare_;
};

}  // namespace meshard::pjrt::internal
