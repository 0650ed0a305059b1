// Data on one device.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "meshard/base/result.h"
#include "meshard/pjrt/array_type.h"
#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/device.h"
#include "meshard/pjrt/event.h"

struct PJRT_Buffer;

namespace meshard::pjrt {

namespace internal {
struct SharedBuffer;
}

/// Move-only owner of a read-only view of a buffer's bytes in place. The memory remains valid and
/// unchanged for the lifetime of the view, even if the buffer is deleted, donated or destroyed in
/// the meantime.
class HostView {
 public:
  HostView(HostView&& other) noexcept;
  HostView& operator=(HostView&& other) noexcept;
  ~HostView();
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  friend class Buffer;
  HostView(ClientRef client, internal::SharedBuffer* shared, std::span<const std::byte> bytes)
      : client_(std::move(client)), shared_(shared), bytes_(bytes) {}
  void release() noexcept;
  ClientRef client_;
  internal::SharedBuffer* shared_ = nullptr;  // counted
  std::span<const std::byte> bytes_;
};

/// Move-only owner of a device buffer. It knows its type, device and liveness without querying the
/// plugin.
///
/// A buffer is dead if it was deleted, donated to a launch, or moved from. Using a dead buffer
/// returns an error before the plugin is called. Several threads may read a buffer. If one thread
/// deletes or donates a buffer that another thread uses, the other thread gets an error.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { take(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~Buffer() { release(); }

  /// False if default-constructed or moved from; such a buffer has no type and no device.
  explicit operator bool() const { return raw_ != nullptr; }
  /// Whether it holds data: not empty, deleted or donated.
  bool is_live() const { return life_.load(std::memory_order_relaxed) == kLive; }
  /// Whether a launch consumed it.
  bool is_donated() const { return life_.load(std::memory_order_relaxed) == kDonated; }

  /// @pre bool(*this), for the next four functions
  const ArrayType& type() const { return *type_; }
  ElementType element_type() const { return type_->element; }
  std::span<const std::int64_t> dimensions() const {
    return {type_->dimensions.data(), type_->dimensions.size()};
  }
  const Device& device() const { return *device_; }
  /// Whether the buffer belongs to this client.
  bool is_of(const ClientRef& client) const { return client_ == client.get(); }

  /// The event that completes when the data is available.
  Result<Event> ready_event() const;
  Result<void> await_ready() const;

  /// Starts a dense, row-major copy to the host. `destination` must stay valid until the event
  /// completes.
  /// @error invalid argument unless destination.size() is at least type().host_size()
  Result<Event> copy_to_host(std::span<std::byte> destination) const;
  /// Copies the data to the host and waits. If the device uses host memory, it reads in place,
  /// which is 20 times faster for small buffers.
  Result<void> read(std::span<std::byte> destination) const;
  /// A view of the bytes in place. Waits until they are ready.
  /// @error unimplemented if the host cannot read the device's memory, or if the device packs
  /// elements of less than one byte
  Result<HostView> host_view() const;
  /// Starts a copy of `destination.size()` bytes of the device's representation, from byte
  /// `offset`.
  Result<Event> copy_raw_to_host(std::span<std::byte> destination, std::int64_t offset) const;

  /// Starts a copy on a device of the same client, in its default memory.
  /// @error invalid argument unless this client can address the device; the plugin's errors
  Result<Buffer> copy_to_device(const Device& device) const;
  /// Starts a copy in a memory of a device of the same client.
  /// @error invalid argument unless this client can address the memory; the plugin's errors
  Result<Buffer> copy_to_memory(const Memory& memory) const;

  /// Frees the device memory as soon as launches that use it are done. The buffer is dead
  /// afterward.
  Result<void> delete_now();
  /// Asks the plugin whether the buffer is deleted.
  Result<bool> plugin_says_deleted() const;
  /// Number of bytes on the device, queried from the plugin.
  Result<std::size_t> device_size() const;
  /// The device address. Does not wait for the data; call await_ready() first.
  Result<std::uintptr_t> unsafe_pointer() const;

  PJRT_Buffer* raw() const { return raw_; }

 private:
  friend class Client;
  friend class LoadedExecutable;
  friend class HostToDeviceTransfer;
  enum Life : std::uint8_t { kEmpty, kLive, kDeleted, kDonated };

  /// Takes ownership of `raw` and of one reference to `client` that is already counted.
  Buffer(internal::ClientState* client, PJRT_Buffer* raw, const ArrayType* type,
         const Device* device) noexcept
      : raw_(raw), client_(client), type_(type), device_(device) {
    set_life(kLive);
  }
  void take(Buffer& other) noexcept {
    raw_ = std::exchange(other.raw_, nullptr);
    client_ = std::exchange(other.client_, nullptr);
    type_ = other.type_;
    device_ = other.device_;
    // A buffer must not be used while it is moved, so plain loads and stores suffice; no locked
    // exchange.
    shared_.store(other.shared_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    other.shared_.store(nullptr, std::memory_order_relaxed);
    life_.store(other.life_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    other.life_.store(kEmpty, std::memory_order_relaxed);
  }
  void release() noexcept;
  Result<void> check_live(std::string_view operation) const;
  void set_life(Life life) const noexcept {
    bool was_live = is_live();
    life_.store(life, std::memory_order_relaxed);
    if (was_live != (life == kLive))
      device_->count_buffer(static_cast<std::int64_t>(type_->host_size()), life == kLive);
  }

  PJRT_Buffer* raw_ = nullptr;
  internal::ClientState* client_ = nullptr;  // counted
  const ArrayType* type_ = nullptr;          // interned by the client: equal types are one object
  const Device* device_ = nullptr;
  // Shares the ownership of raw_ with views of it; null until the first view is made.
  mutable std::atomic<internal::SharedBuffer*> shared_{nullptr};
  // Mutable because a launch takes its arguments as const and may consume them.
  mutable std::atomic<std::uint8_t> life_{kEmpty};
  mutable std::uint32_t launch_mark_ = 0;  // guarded by the client's launch lock
};

}  // namespace meshard::pjrt
