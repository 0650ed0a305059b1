// Data on one device.
#pragma once
#include "meshard/pjrt/buffer_view.h"

namespace meshard::pjrt {

/// Move-only owner of a device buffer, and a view of it.
class Buffer : public BufferView {
 public:
  Buffer() : BufferView(nullptr, nullptr, &own_) {}
  Buffer(Buffer&& other) noexcept : Buffer() { take(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~Buffer() { release(); }

  /// Frees the device memory as soon as launches that use it are done. The buffer is dead
  /// afterward.
  Result<void> delete_now();

 private:
  friend class BufferList;
  friend class BufferView;
  friend class Client;
  friend class LoadedExecutable;
  friend class HostToDeviceTransfer;

  /// Takes ownership of `raw` and of one reference to `client` that is already counted.
  Buffer(internal::ClientState* client, PJRT_Buffer* raw, const ArrayType* type,
         const Device* device) noexcept
      : BufferView(raw, device, &own_), own_(client, type) {
    count(true);
  }
  void take(Buffer& other) noexcept {
    raw_ = std::exchange(other.raw_, nullptr);
    device_ = other.device_;
    own_.take(other.own_);
  }
  void release() noexcept;
  void set_life(internal::BufferState::Life life) const noexcept {
    bool was_live = is_live(), lives = life == internal::BufferState::kLive;
    own_.life.store(life, std::memory_order_relaxed);
    if (was_live != lives) count(lives);
  }
  void count(bool lives) const noexcept {
    device_->count_bytes(static_cast<std::int64_t>(type().host_size()), lives);
  }

  internal::BufferState own_;
};

}  // namespace meshard::pjrt
