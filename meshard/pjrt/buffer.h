// Data on one device: owned, viewed, or filled in pieces.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/array_type.h"
#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/device.h"
#include "meshard/pjrt/event.h"

struct PJRT_Buffer;

namespace meshard::pjrt {

class Buffer;

namespace internal {

struct SharedBuffer;

/// What the buffers of one owner have in common.
struct BufferState {
  enum Life : std::uint8_t { kEmpty, kLive, kDeleted, kDonated };

  ClientState* client = nullptr;    // counted
  const ArrayType* type = nullptr;  // interned by the client: equal types are one object
  // The buffers whose ownership is shared with views of their bytes.
  mutable std::atomic<SharedBuffer*> shared{nullptr};
  // Mutable because a launch takes its arguments as const and may consume them.
  mutable std::atomic<std::uint8_t> life{kEmpty};
  mutable std::uint32_t launch_mark = 0;  // guarded by the client's launch lock

  BufferState() = default;
  BufferState(ClientState* counted_client, const ArrayType* interned_type) noexcept
      : client(counted_client), type(interned_type), life(kLive) {}
  /// Leaves `other` empty. Owners must not be used while they are moved, so plain loads and stores
  /// suffice.
  void take(BufferState& other) noexcept {
    client = std::exchange(other.client, nullptr);
    type = other.type;
    shared.store(other.shared.load(std::memory_order_relaxed), std::memory_order_relaxed);
    other.shared.store(nullptr, std::memory_order_relaxed);
    life.store(other.life.load(std::memory_order_relaxed), std::memory_order_relaxed);
    other.life.store(kEmpty, std::memory_order_relaxed);
    launch_mark = other.launch_mark;
  }
  bool is_live() const { return life.load(std::memory_order_relaxed) == kLive; }
  bool is_donated() const { return life.load(std::memory_order_relaxed) == kDonated; }
};

}  // namespace internal

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
  friend class BufferView;
  HostView(ClientRef client, internal::SharedBuffer* shared, std::span<const std::byte> bytes)
      : client_(std::move(client)), shared_(shared), bytes_(bytes) {}
  void release() noexcept;
  ClientRef client_;
  internal::SharedBuffer* shared_ = nullptr;  // counted
  std::span<const std::byte> bytes_;
};

/// A buffer on one device: a Buffer, or one of the buffers of a BufferList, which own it. Valid as
/// long as its owner is neither moved nor destroyed. Its type, device and liveness are read without
/// querying the plugin.
///
/// A buffer is dead if it was deleted, donated to a launch, or moved from. Using a dead buffer
/// returns an error before the plugin is called. Several threads may read a buffer. If one thread
/// deletes or donates a buffer that another thread uses, the other thread gets an error.
class BufferView {
 public:
  /// False if its owner was default-constructed or moved from; it then has no type and no device.
  explicit operator bool() const { return raw_ != nullptr; }
  /// Whether it holds data: not empty, deleted or donated.
  bool is_live() const { return state_->is_live(); }
  /// Whether a launch consumed it.
  bool is_donated() const { return state_->is_donated(); }

  /// @pre bool(*this), for the next four functions
  const ArrayType& type() const { return *state_->type; }
  ElementType element_type() const { return type().element; }
  std::span<const std::int64_t> dimensions() const {
    return {type().dimensions.data(), type().dimensions.size()};
  }
  const Device& device() const { return *device_; }
  /// Whether the buffer belongs to this client.
  bool is_of(const ClientRef& client) const { return state_->client == client.get(); }

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

  /// Starts a copy on a device of the same client, in its default memory.
  /// @error invalid argument unless this client can address the device; the plugin's errors
  Result<Buffer> copy_to_device(const Device& device) const;

  /// Asks the plugin whether the buffer is deleted.
  Result<bool> plugin_says_deleted() const;
  /// The device address. Does not wait for the data; call await_ready() first.
  Result<std::uintptr_t> unsafe_pointer() const;

  PJRT_Buffer* raw() const { return raw_; }

 private:
  friend class Buffer;
  friend class BufferList;
  friend class LoadedExecutable;
  BufferView(PJRT_Buffer* raw, const Device* device, const internal::BufferState* state)
      : raw_(raw), device_(device), state_(state) {}
  Result<void> check_live(std::string_view operation) const;

  PJRT_Buffer* raw_ = nullptr;
  const Device* device_ = nullptr;
  const internal::BufferState* state_;
};

}  // namespace meshard::pjrt

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

/// Move-only owner of a transfer of several buffers to one device. take_buffer() returns each
/// buffer, which becomes ready when its last piece has arrived.
class HostToDeviceTransfer {
 public:
  std::size_t buffer_count() const { return types_.size(); }
  const ArrayType& type(std::size_t index) const { return *types_[index]; }
  /// Number of bytes of buffer `index` on the device.
  Result<std::size_t> buffer_size(std::size_t index) const;
  /// Sends `bytes` to offset `offset` of buffer `index`. They must stay valid until the event
  /// completes.
  /// @error out of range unless the bytes fit inside the buffer
  Result<Event> send(std::size_t index, std::span<const std::byte> bytes, std::int64_t offset,
                     bool is_last) const;
  /// Returns buffer `index`. May be called once for each buffer.
  Result<Buffer> take_buffer(std::size_t index);
  /// Abandons buffer `index`: everything that waits for it gets `error`.
  Result<void> set_error(std::size_t index, const Error& error) const;

 private:
  friend class Client;
  HostToDeviceTransfer(ClientRef client, PJRT_AsyncHostToDeviceTransferManager* raw,
                       std::vector<const ArrayType*> types, const Device* device);
  Result<void> check_index(std::size_t index) const;
  internal::Owned<PJRT_AsyncHostToDeviceTransferManager> own_;
  std::vector<const ArrayType*> types_;
  std::vector<bool> taken_;
  const Device* device_ = nullptr;
};

}  // namespace meshard::pjrt
