// Delays the destruction of small buffers for a moment.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "meshard/pjrt/buffer_list.h"

namespace meshard::pjrt::internal {

/// Buffers that this thread has dropped and that are not destroyed yet. The plugin makes the
/// outputs of a launch device by device, but tensors are dropped array by array. Destroying many
/// small buffers in the plugin's order visits its objects in the order of their addresses, which
/// takes half of the time.
class ReleasedBuffers {
 public:
  /// Those of this thread. They are destroyed during its next launch, while the devices work;
  /// before it waits or reads statistics; and when it ends.
  static ReleasedBuffers& of_thread();
  ~ReleasedBuffers() { destroy(); }

  /// Whether buffers of `bytes` bytes on each of `devices` devices are worth the delay.
  static bool takes(std::size_t bytes, std::size_t devices) {
    return devices > 1 && bytes <= kMostBytesEach;
  }
  /// Takes ownership of the buffers of one array, and of a reference to the client that is already
  /// counted.
  void add(ClientState* client, const DeviceList& devices, std::span<PJRT_Buffer* const> buffers,
           std::size_t bytes);
  void destroy() noexcept;

 private:
  static constexpr std::size_t kMostBytesEach = 1 << 12;
  static constexpr std::size_t kMostBytes = 1 << 20;
  static constexpr std::size_t kMostArrays = 1 << 11;

  ClientState* client_ = nullptr;  // counted once for each array
  const DeviceList* devices_ = nullptr;
  std::vector<PJRT_Buffer*> buffers_;  // array by array
  std::size_t bytes_ = 0;
};

}  // namespace meshard::pjrt::internal
