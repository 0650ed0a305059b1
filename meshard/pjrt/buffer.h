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

/// Move-only owner of a read-only view of a buffer's bytes in place. The bytes stay where they are
/// as long as the view lives, even if the buffer is deleted, donated or destroyed meanwhile.
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

/// Move-only owner of a device buffer. Knows its type, device and liveness without asking the
/// plugin.
///
/// Dead: deleted, donated to a launch, or moved from. Every use of a dead buffer is an error here,
/// before it could reach the plugin. Reading it from several threads is safe; deleting or donating
/// it while another thread uses it gives that thread an error.
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

  /// False for a default-made or moved-from one; those have no type and no device.
  explicit operator bool() const { return raw_ != nullptr; }
  /// Whether it holds data: not empty, not deleted, not donated.
  bool is_live() const { return life_.load(std::memory_order_relaxed) == kLive; }
  /// Whether a launch consumed it.
  bool is_donated() const { return life_.load(std::memory_order_relaxed) == kDonated; }

  /// @pre bool(*this), for these four
  const ArrayType& type() const { return *type_; }
  ElementType element_type() const { return type_->element; }
  std::span<const std::int64_t> dimensions() const {
    return {type_->dimensions.data(), type_->dimensions.size()};
  }
  const Device& device() const { return *device_; }
  /// Whether it belongs to this client.
  bool is_of(const ClientRef& client) const { return client_ == client.get(); }

  /// Happens when the data is there.
  Result<Event> ready_event() const;
  Result<void> await_ready() const;

  /// Starts a copy of the data, dense and row-major, to `destination`, which must live until the
  /// event.
  /// @error invalid argument unless destination.size() is at least type().host_size()
  Result<Event> copy_to_host(std::span<std::byte> destination) const;
  /// Copies and waits. On host memory it reads in place: 20 times quicker for small buffers.
  Result<void> read(std::span<std::byte> destination) const;
  /// The bytes in place, once they are ready.
  /// @error unimplemented if the device's memory cannot be read by the host, or if elements of less
  /// than a byte are packed there
  Result<HostView> host_view() const;
  /// Starts a copy of `destination.size()` bytes from byte `offset` of the device's representation.
  Result<Event> copy_raw_to_host(std::span<std::byte> destination, std::int64_t offset) const;

  Result<Buffer> copy_to_device(const Device& device) const;
  Result<Buffer> copy_to_memory(const Memory& memory) const;

  /// Frees the device's memory now (after launches that use it); the buffer is dead then.
  Result<void> delete_now();
  /// Asks the plugin whether it counts the buffer as deleted.
  Result<bool> plugin_says_deleted() const;
  /// Bytes on the device, asked from the plugin.
  Result<std::size_t> device_size() const;
  /// The address on the device. Does not wait for the data: await_ready() first.
  Result<std::uintptr_t> unsafe_pointer() const;

  PJRT_Buffer* raw() const { return raw_; }

 private:
  friend class Client;
  friend class LoadedExecutable;
  friend class HostToDeviceTransfer;
  enum Life : std::uint8_t { kEmpty, kLive, kDeleted, kDonated };

  /// Takes over `raw` and one reference on `client` that was counted before.
  Buffer(internal::ClientState* client, PJRT_Buffer* raw, const ArrayType* type,
         const Device* device) noexcept
      : raw_(raw), client_(client), type_(type), device_(device), life_(kLive) {}
  void take(Buffer& other) noexcept {
    raw_ = std::exchange(other.raw_, nullptr);
    client_ = std::exchange(other.client_, nullptr);
    type_ = other.type_;
    device_ = other.device_;
    // Nobody may use a buffer while it is moved: plain loads and stores, no locked exchange.
    shared_.store(other.shared_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    other.shared_.store(nullptr, std::memory_order_relaxed);
    life_.store(other.life_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    other.life_.store(kEmpty, std::memory_order_relaxed);
  }
  void release() noexcept;
  Result<void> check_live(std::string_view operation) const;

  PJRT_Buffer* raw_ = nullptr;
  internal::ClientState* client_ = nullptr;  // counted
  const ArrayType* type_ = nullptr;          // interned by the client: equal types are one object
  const Device* device_ = nullptr;
  // Who owns raw_ together with views of it; null as long as there was no view.
  mutable std::atomic<internal::SharedBuffer*> shared_{nullptr};
  // A launch takes its arguments const and may consume them.
  mutable std::atomic<std::uint8_t> life_{kEmpty};
  mutable std::uint32_t launch_mark_ = 0;  // under the client's launch lock
};

}  // namespace meshard::pjrt
