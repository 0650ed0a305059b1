// Device buffers that are filled in pieces.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/client_ref.h"

struct PJRT_AsyncHostToDeviceTransferManager;

namespace meshard::pjrt {

/// Move-only owner of a transfer of several buffers to one device. take_buffer() returns each
/// buffer, which becomes ready when its last piece has arrived.
class HostToDeviceTransfer {
 public:
  HostToDeviceTransfer(HostToDeviceTransfer&& other) noexcept;
  HostToDeviceTransfer& operator=(HostToDeviceTransfer&& other) noexcept;
  ~HostToDeviceTransfer();

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
  void release() noexcept;
  ClientRef client_;
  PJRT_AsyncHostToDeviceTransferManager* raw_ = nullptr;
  std::vector<const ArrayType*> types_;
  std::vector<bool> taken_;
  const Device* device_ = nullptr;
};

}  // namespace meshard::pjrt
