// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/host_to_device_transfer.h"

#include <utility>

#include "meshard/pjrt/internal/client_state.h"

namespace meshard::pjrt {

HostToDeviceTransfer::HostToDeviceTransfer(ClientRef client,
                                           PJRT_AsyncHostToDeviceTransferManager* raw,
                                           std::vector<const ArrayType*> types,
                                           const Device* device)
    : client_(std::move(client)),
      raw_(raw),
      types_(std::move(types)),
      taken_(types_.size()),
      device_(device) {}

HostToDeviceTransfer::HostToDeviceTransfer(HostToDeviceTransfer&& other) noexcept
    : client_(std::move(other.client_)),
      raw_(std::exchange(other.raw_, nullptr)),
      types_(std::move(other.types_)),
      taken_(std::move(other.taken_)),
      device_(other.device_) {}

HostToDeviceTransfer& HostToDeviceTransfer::operator=(HostToDeviceTransfer&& other) noexcept {
  std::swap(client_, other.client_);
  std::swap(raw_, other.raw_);
  std::swap(types_, other.types_);
  std::swap(taken_, other.taken_);
  std::swap(device_, other.device_);
  return *this;
}

HostToDeviceTransfer::~HostToDeviceTransfer() { release(); }

void HostToDeviceTransfer::release() noexcept {
  if (raw_ == nullptr) return;
  MESHARD_PJRT_ARGS(PJRT_AsyncHostToDeviceTransferManager_Destroy, args);
  args.transfer_manager = raw_;
  (void)MESHARD_PJRT_CALL(client_->api, PJRT_AsyncHostToDeviceTransferManager_Destroy, args);
  raw_ = nullptr;
}

Result<void> HostToDeviceTransfer::check_index(std::size_t index) const {
  if (index < types_.size()) return {};
  return Error(ErrorCode::kOutOfRange,
               cat("[transfer] buffer index ", index, " is out of range: the number of buffers is ",
                   types_.size()));
}

Result<std::size_t> HostToDeviceTransfer::buffer_size(std::size_t index) const {
  MESHARD_RETURN_IF_ERROR(check_index(index));
  MESHARD_PJRT_ARGS(PJRT_AsyncHostToDeviceTransferManager_BufferSize, args);
  args.transfer_manager = raw_;
  args.buffer_index = static_cast<int>(index);
  MESHARD_RETURN_IF_ERROR(
      MESHARD_PJRT_CALL(client_->api, PJRT_AsyncHostToDeviceTransferManager_BufferSize, args));
  return args.buffer_size;
}

Result<Event> HostToDeviceTransfer::send(std::size_t index, std::span<const std::byte> bytes,
                                         std::int64_t offset, bool is_last) const {
  MESHARD_ASSIGN_OR_RETURN(std::size_t size, buffer_size(index));
  if (offset < 0 || static_cast<std::size_t>(offset) > size ||
      bytes.size() > size - static_cast<std::size_t>(offset) || bytes.data() == nullptr)
    return Error(ErrorCode::kOutOfRange, cat("[transfer] ", bytes.size(), " bytes at offset ",
                                             offset, " do not fit in buffer ", index, " of ", size,
                                             " bytes, or the data pointer is null"));
  MESHARD_PJRT_ARGS(PJRT_AsyncHostToDeviceTransferManager_TransferData, args);
  args.transfer_manager = raw_;
  args.buffer_index = static_cast<int>(index);
  args.data = bytes.data();
  args.offset = offset;
  args.transfer_size = static_cast<std::int64_t>(bytes.size());
  args.is_last_transfer = is_last;
  MESHARD_RETURN_IF_ERROR(
      MESHARD_PJRT_CALL(client_->api, PJRT_AsyncHostToDeviceTransferManager_TransferData, args));
  return Event(client_, client_->api, args.done_with_h2d_transfer);
}

Result<Buffer> HostToDeviceTransfer::take_buffer(std::size_t index) {
  MESHARD_RETURN_IF_ERROR(check_index(index));
  if (taken_[index])
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[transfer] buffer ", index, " was already taken"));
  MESHARD_PJRT_ARGS(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, args);
  args.transfer_manager = raw_;
  args.buffer_index = static_cast<int>(index);
  MESHARD_RETURN_IF_ERROR(
      MESHARD_PJRT_CALL(client_->api, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, args));
  taken_[index] = true;
  internal::add_references(client_.get(), 1);
  return Buffer(client_.get(), args.buffer_out, types_[index], device_);
}

Result<void> HostToDeviceTransfer::set_error(std::size_t index, const Error& error) const {
  MESHARD_RETURN_IF_ERROR(check_index(index));
  MESHARD_PJRT_ARGS(PJRT_AsyncHostToDeviceTransferManager_SetBufferError, args);
  args.transfer_manager = raw_;
  args.buffer_index = static_cast<int>(index);
  args.error_code = static_cast<PJRT_Error_Code>(error.code());
  args.error_message = error.message().data();
  args.error_message_size = error.message().size();
  return MESHARD_PJRT_CALL(client_->api, PJRT_AsyncHostToDeviceTransferManager_SetBufferError,
                           args);
}

}  // namespace meshard::pjrt
