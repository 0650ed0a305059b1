// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/buffer.h"

#include <cstring>

#include "meshard/pjrt/internal/await.h"
#include "meshard/pjrt/internal/client_state.h"
#include "meshard/pjrt/internal/process_end.h"
#include "meshard/pjrt/internal/shared_buffer.h"

namespace meshard::pjrt {

HostView::HostView(HostView&& other) noexcept
    : client_(std::move(other.client_)),
      shared_(std::exchange(other.shared_, nullptr)),
      bytes_(std::exchange(other.bytes_, {})) {}

HostView& HostView::operator=(HostView&& other) noexcept {
  std::swap(client_, other.client_);
  std::swap(shared_, other.shared_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostView::~HostView() { release(); }

void HostView::release() noexcept {
  if (shared_ != nullptr) std::exchange(shared_, nullptr)->give_back();
}

Result<void> BufferView::check_live(std::string_view operation) const {
  switch (state_->life.load(std::memory_order_relaxed)) {
    case internal::BufferState::kLive: return {};
    case internal::BufferState::kEmpty:
      return Error(ErrorCode::kInvalidArgument, cat("[", operation, "] the buffer is empty"));
    case internal::BufferState::kDonated:
      return Error(ErrorCode::kInvalidArgument,
                   cat("[", operation, "] the buffer ", state_->type->to_string(), " on device ",
                       device_->id(), " was donated to a launch"));
    default:
      return Error(ErrorCode::kInvalidArgument,
                   cat("[", operation, "] the buffer ", state_->type->to_string(), " on device ",
                       device_->id(), " was deleted"));
  }
}

Result<Event> BufferView::ready_event() const {
  MESHARD_RETURN_IF_ERROR(check_live("ready_event"));
  MESHARD_PJRT_QUERY(state_->client->api, PJRT_Buffer_ReadyEvent, args, buffer, raw_);
  return Event(ClientRef(state_->client), state_->client->api, args.event);
}

namespace {

std::string describe_buffer(const void* subject) {
  const auto& buffer = *static_cast<const BufferView*>(subject);
  return cat(buffer.type().to_string(), " on device ", buffer.device().id(),
             buffer.device().of_platform());
}

}  // namespace

Result<void> BufferView::await_ready() const {
  MESHARD_ASSIGN_OR_RETURN(Event ready, ready_event());
  PJRT_Event* raw = ready.raw();
  return internal::await_events(
      state_->client->api, {&raw, 1}, "PJRT_Event_Await",
      {.describe = describe_buffer, .subject = this, .client = state_->client, .device = device_});
}

Result<Event> BufferView::copy_to_host(std::span<std::byte> destination) const {
  MESHARD_RETURN_IF_ERROR(check_live("copy_to_host"));
  std::size_t needed = state_->type->host_size();
  if (destination.size() < needed)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[copy_to_host] the destination has ", destination.size(), " bytes, ",
                     state_->type->to_string(), " needs ", needed));
  if (needed == 0) return Event();
  MESHARD_PJRT_ARGS(PJRT_Buffer_ToHostBuffer, args);
  args.src = raw_;
  args.dst = destination.data();
  args.dst_size = destination.size();
  internal::PluginWork work;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(state_->client->api, PJRT_Buffer_ToHostBuffer, args));
  return Event(ClientRef(state_->client), state_->client->api, args.event);
}

Result<void> BufferView::read(std::span<std::byte> destination) const {
  MESHARD_RETURN_IF_ERROR(check_live("read"));
  std::size_t needed = state_->type->host_size();
  if (state_->client->rules.host_memory && bit_width(state_->type->element) >= 8 &&
      destination.size() >= needed) {
    // For large copies too: the plugin would do them in one thread of its pool.
    MESHARD_ASSIGN_OR_RETURN(HostView view, host_view());
    if (needed != 0) std::memcpy(destination.data(), view.bytes().data(), needed);
    return {};
  }
  MESHARD_ASSIGN_OR_RETURN(Event copied, copy_to_host(destination));
  return copied.await();
}

Result<HostView> BufferView::host_view() const {
  MESHARD_RETURN_IF_ERROR(check_live("host_view"));
  if (!state_->client->rules.host_memory)
    return Error(ErrorCode::kUnimplemented, cat("[host_view] the host cannot read the memory of ",
                                                state_->client->platform, " devices in place"));
  if (bit_width(state_->type->element) < 8)
    return Error(
        ErrorCode::kUnimplemented,
        cat("[host_view] ", state_->type->to_string(),
            " cannot be viewed in place: its elements are smaller than a byte and packed"));
  MESHARD_RETURN_IF_ERROR(await_ready());

  internal::SharedBuffer* shared = internal::share(*state_, raw_);
  // From here on, a failure releases everything that is held.
  MESHARD_RETURN_IF_ERROR(shared->hold());
  HostView view(ClientRef(state_->client), shared, {});
  MESHARD_ASSIGN_OR_RETURN(std::uintptr_t address, unsafe_pointer());
  view.bytes_ = {reinterpret_cast<const std::byte*>(address), state_->type->host_size()};
  return view;
}

Result<Buffer> BufferView::copy_to_device(const Device& device) const {
  MESHARD_RETURN_IF_ERROR(check_live("copy_to_device"));
  if (state_->client->find(device.raw()) != &device || !device.addressable())
    return Error(ErrorCode::kInvalidArgument, cat("[copy_to_device] device ", device.id(),
                                                  " is not an addressable device of this client"));
  MESHARD_PJRT_ARGS(PJRT_Buffer_CopyToDevice, args);
  args.buffer = raw_;
  args.dst_device = device.raw();
  internal::PluginWork work;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(state_->client->api, PJRT_Buffer_CopyToDevice, args));
  internal::add_references(state_->client, 1);
  return Buffer(state_->client, args.dst_buffer, state_->type, &device);
}

Result<bool> BufferView::plugin_says_deleted() const {
  if (raw_ == nullptr) return true;
  MESHARD_PJRT_QUERY(state_->client->api, PJRT_Buffer_IsDeleted, args, buffer, raw_);
  return args.is_deleted;
}

Result<std::uintptr_t> BufferView::unsafe_pointer() const {
  MESHARD_RETURN_IF_ERROR(check_live("unsafe_pointer"));
  MESHARD_PJRT_QUERY(state_->client->api, PJRT_Buffer_UnsafePointer, args, buffer, raw_);
  return args.buffer_pointer;
}

using internal::BufferState;

void Buffer::release() noexcept {
  if (raw_ == nullptr) return;
  internal::destroy_buffers(own_.client->api, own_, {&raw_, 1});
  set_life(BufferState::kEmpty);  // before the client and its devices may go
  raw_ = nullptr;
  internal::drop_reference(std::exchange(own_.client, nullptr));
}

Result<void> Buffer::delete_now() {
  MESHARD_RETURN_IF_ERROR(check_live("delete_now"));
  // Before the call, so that no other thread uses the buffer during it.
  set_life(BufferState::kDeleted);
  MESHARD_PJRT_ARGS(PJRT_Buffer_Delete, args);
  args.buffer = raw_;
  Result<void> done = MESHARD_PJRT_CALL(own_.client->api, PJRT_Buffer_Delete, args);
  if (!done.ok() && !plugin_says_deleted().value_or(true)) set_life(BufferState::kLive);
  return done;
}

HostToDeviceTransfer::HostToDeviceTransfer(ClientRef client,
                                           PJRT_AsyncHostToDeviceTransferManager* raw,
                                           std::vector<const ArrayType*> types,
                                           const Device* device)
    : own_(client, client->api, raw),
      types_(std::move(types)),
      taken_(types_.size()),
      device_(device) {}

Result<void> HostToDeviceTransfer::check_index(std::size_t index) const {
  if (index < types_.size()) return {};
  return Error(ErrorCode::kOutOfRange,
               cat("[transfer] buffer index ", index, " is out of range: the number of buffers is ",
                   types_.size()));
}

Result<std::size_t> HostToDeviceTransfer::buffer_size(std::size_t index) const {
  MESHARD_RETURN_IF_ERROR(check_index(index));
  MESHARD_PJRT_ARGS(PJRT_AsyncHostToDeviceTransferManager_BufferSize, args);
  args.transfer_manager = own_.raw;
  args.buffer_index = static_cast<int>(index);
  MESHARD_RETURN_IF_ERROR(
      MESHARD_PJRT_CALL(own_.api, PJRT_AsyncHostToDeviceTransferManager_BufferSize, args));
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
  args.transfer_manager = own_.raw;
  args.buffer_index = static_cast<int>(index);
  args.data = bytes.data();
  args.offset = offset;
  args.transfer_size = static_cast<std::int64_t>(bytes.size());
  args.is_last_transfer = is_last;
  MESHARD_RETURN_IF_ERROR(
      MESHARD_PJRT_CALL(own_.api, PJRT_AsyncHostToDeviceTransferManager_TransferData, args));
  return Event(own_.client, own_.api, args.done_with_h2d_transfer);
}

Result<Buffer> HostToDeviceTransfer::take_buffer(std::size_t index) {
  MESHARD_RETURN_IF_ERROR(check_index(index));
  if (taken_[index])
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[transfer] buffer ", index, " was already taken"));
  MESHARD_PJRT_ARGS(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, args);
  args.transfer_manager = own_.raw;
  args.buffer_index = static_cast<int>(index);
  MESHARD_RETURN_IF_ERROR(
      MESHARD_PJRT_CALL(own_.api, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, args));
  taken_[index] = true;
  internal::add_references(own_.client.get(), 1);
  return Buffer(own_.client.get(), args.buffer_out, types_[index], device_);
}

Result<void> HostToDeviceTransfer::set_error(std::size_t index, const Error& error) const {
  MESHARD_RETURN_IF_ERROR(check_index(index));
  MESHARD_PJRT_ARGS(PJRT_AsyncHostToDeviceTransferManager_SetBufferError, args);
  args.transfer_manager = own_.raw;
  args.buffer_index = static_cast<int>(index);
  args.error_code = static_cast<PJRT_Error_Code>(error.code());
  args.error_message = error.message().data();
  args.error_message_size = error.message().size();
  return MESHARD_PJRT_CALL(own_.api, PJRT_AsyncHostToDeviceTransferManager_SetBufferError, args);
}

}  // namespace meshard::pjrt
