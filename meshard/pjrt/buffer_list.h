// The data of one array on several devices.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "meshard/base/inline_vector.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/device.h"

namespace meshard::pjrt {

/// Move-only owner of buffers of one type, one on each device of a list: the shards of an array.
/// Type, liveness and client are kept once for all of them: the list is deleted and donated as a
/// whole.
class BufferList {
 public:
  BufferList() = default;
  BufferList(BufferList&& other) noexcept { take(other); }
  BufferList& operator=(BufferList&& other) noexcept {
    if (this != &other) {
      if (devices_ != nullptr) release();
      take(other);
    }
    return *this;
  }
  ~BufferList() {
    if (devices_ != nullptr) release();
  }
  /// Takes over the buffers, which are empty afterward.
  /// @pre at least one buffer; all are live, of the same client and type
  static BufferList of(std::span<Buffer> buffers);
  /// The buffers, in the order of devices(), each with an owner of its own. The list is empty
  /// afterward.
  /// @pre it is live
  std::vector<Buffer> split() &&;

  /// False if default-constructed or moved from; such a list has no type and no devices.
  explicit operator bool() const { return devices_ != nullptr; }
  /// Whether it holds data: not empty, deleted or donated.
  bool is_live() const { return state_.is_live(); }
  /// Whether a launch consumed it.
  bool is_donated() const { return state_.is_donated(); }

  /// @pre bool(*this), for the next functions
  const ArrayType& type() const { return *state_.type; }
  const DeviceList& devices() const { return *devices_; }
  /// Whether the buffers belong to this client.
  bool is_of(const ClientRef& client) const { return state_.client == client.get(); }

  std::size_t size() const { return raw_.size(); }
  /// host_size() of the type, which all buffers have.
  std::size_t bytes_each() const { return bytes_; }
  /// The buffer on device `devices()[i]`.
  BufferView operator[](std::size_t i) const { return {raw_[i], &(*devices_)[i], &state_}; }

  /// Waits for the launch that computes the buffers, if it is in flight: for its events, which
  /// exist already, while BufferView::await_ready() makes one for each buffer.
  /// @return true if it ended without a failure: the buffers are ready. False means unknown: the
  /// launch failed, or its record is too old.
  /// @pre it is live
  bool await_launch() const;

  /// Puts the buffers in the order of `devices`.
  /// @pre a list of the same devices, of the same client; positions is
  /// this->devices().positions_of(devices)
  void reorder(const DeviceList& devices, std::span<const std::uint32_t> positions);
  /// Frees the device memory as soon as launches that use it are done. The buffers are dead
  /// afterward.
  /// @error the plugin's first error; the buffers are alive if it deleted none of them
  Result<void> delete_now();

 private:
  friend class BufferBatch;
  friend class LoadedExecutable;

  /// Replaces the list by an output of the client's launch of this number: takes ownership of the
  /// buffers at raw[i * stride], and of one reference to `client` that is already counted. Their
  /// bytes, `bytes` each, are counted, too.
  void set_output(internal::ClientState* client, std::uint64_t launch, PJRT_Buffer* const* raw,
                  std::size_t stride, const ArrayType* type, std::size_t bytes,
                  const DeviceList* devices) {
    if (devices_ != nullptr) release();
    state_.client = client;
    state_.type = type;
    state_.launch_mark = 0;
    state_.life.store(internal::BufferState::kLive, std::memory_order_relaxed);
    devices_ = devices;
    bytes_ = bytes;
    launch_ = launch;
    PJRT_Buffer** own = raw_.append_uninitialized(devices->size());
    for (std::size_t i = 0; i < devices->size(); ++i) own[i] = raw[i * stride];
  }
  void take(BufferList& other) noexcept {
    state_.take(other.state_);
    devices_ = std::exchange(other.devices_, nullptr);
    raw_ = std::move(other.raw_);
    bytes_ = other.bytes_;
    launch_ = other.launch_;
  }
  /// @pre bool(*this)
  void release() noexcept;
  /// Ends the ownership without destroying anything. @pre bool(*this)
  void forget() noexcept;
  void set_life(internal::BufferState::Life life) const noexcept;
  /// The same without counting bytes: the caller counts those of many lists at once.
  void set_life_uncounted(internal::BufferState::Life life) const noexcept {
    state_.life.store(life, std::memory_order_relaxed);
  }
  void count(bool lives) const noexcept;
  /// Whether the plugin has deleted one of them.
  bool plugin_says_deleted() const;

  internal::BufferState state_;
  const DeviceList* devices_ = nullptr;
  InlineVector<PJRT_Buffer*, 8> raw_;
  std::size_t bytes_ = 0;     // host_size() of the type
  std::uint64_t launch_ = 0;  // the number of the launch that computes it; 0: none
};

/// Move-only owner of the buffers of several lists on the same devices, which are destroyed device
/// by device. A plugin makes the outputs of a launch in this order, so destroying many small
/// buffers visits its objects in the order of their addresses, which takes half of the time.
class BufferBatch {
 public:
  BufferBatch() = default;
  BufferBatch(BufferBatch&& other) noexcept { swap(other); }
  BufferBatch& operator=(BufferBatch&& other) noexcept {
    swap(other);
    return *this;
  }
  ~BufferBatch() { destroy(); }

  /// Whether add() can take the list: a launch returned it, and it is neither deleted nor viewed.
  static bool takes(const BufferList& list) {
    return list.launch_ != 0 && (list.is_live() || list.is_donated()) &&
           list.state_.shared.load(std::memory_order_acquire) == nullptr;
  }
  /// Takes over the buffers. They are counted as live until they are destroyed.
  /// @pre takes(list), which is on devices() of the same client unless this is empty
  void add(BufferList& list);

  /// The number of buffers on all devices.
  std::size_t size() const { return buffers_.size(); }
  /// The bytes that are counted as live; 0 if all buffers were donated.
  std::size_t bytes() const { return bytes_; }
  /// Null if it is empty.
  const DeviceList* devices() const { return devices_; }
  /// Destroys the buffers on a device. Several threads may do so, for different devices.
  void destroy_on(std::size_t device) const noexcept;
  /// Ends the ownership. @pre destroy_on() was called for each device @post it is empty
  void forget() noexcept;
  /// Destroys the buffers. @post it is empty, with memory for as many buffers
  void destroy() noexcept;

 private:
  void swap(BufferBatch& other) noexcept {
    std::swap(client_, other.client_);
    std::swap(devices_, other.devices_);
    std::swap(buffers_, other.buffers_);
    std::swap(bytes_, other.bytes_);
  }

  internal::ClientState* client_ = nullptr;  // one reference for each list
  const DeviceList* devices_ = nullptr;
  std::vector<PJRT_Buffer*> buffers_;  // list by list
  std::size_t bytes_ = 0;
};

}  // namespace meshard::pjrt
