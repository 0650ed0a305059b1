// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/buffer.h"

#include <cstring>
#include <mutex>

#include "meshard/pjrt/internal/await.h"
#include "meshard/pjrt/internal/client_state.h"
#include "meshard/pjrt/internal/process_end.h"

namespace meshard::pjrt {
namespace internal {

/// A plugin's buffer with several owners: the Buffer and the views of its bytes.
struct SharedBuffer {
  const PJRT_Api* api;
  PJRT_Buffer* raw;
  std::atomic<int> references{1};
  // Needed because the plugin does not guard its list of a buffer's external references.
  std::mutex external{};

  Result<void> hold() {
    std::lock_guard lock(external);
    MESHARD_PJRT_ARGS(PJRT_Buffer_IncreaseExternalReferenceCount, args);
    args.buffer = raw;
    MESHARD_RETURN_IF_ERROR(
        MESHARD_PJRT_CALL(api, PJRT_Buffer_IncreaseExternalReferenceCount, args));
    references.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  void give_back() noexcept {
    {
      std::lock_guard lock(external);
      MESHARD_PJRT_ARGS(PJRT_Buffer_DecreaseExternalReferenceCount, args);
      args.buffer = raw;
      (void)MESHARD_PJRT_CALL(api, PJRT_Buffer_DecreaseExternalReferenceCount, args);
    }
    drop();
  }
  void drop() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    destroy_buffer(api, raw);
    delete this;
  }
};

}  // namespace internal

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

void Buffer::release() noexcept {
  if (raw_ == nullptr) return;
  if (auto* shared = shared_.exchange(nullptr, std::memory_order_acq_rel))
    shared->drop();
  else
    internal::destroy_buffer(client_->api, raw_);
  raw_ = nullptr;
  set_life(kEmpty);  // before the client and its devices may go
  internal::drop_reference(std::exchange(client_, nullptr));
}

Result<void> Buffer::check_live(std::string_view operation) const {
  switch (life_.load(std::memory_order_relaxed)) {
    case kLive: return {};
    case kEmpty:
      return Error(ErrorCode::kInvalidArgument, cat("[", operation, "] the buffer is empty"));
    case kDonated:
      return Error(ErrorCode::kInvalidArgument,
                   cat("[", operation, "] the buffer ", type_->to_string(), " on device ",
                       device_->id(), " was donated to a launch"));
    default:
      return Error(ErrorCode::kInvalidArgument,
                   cat("[", operation, "] the buffer ", type_->to_string(), " on device ",
                       device_->id(), " was deleted"));
  }
}

Result<Event> Buffer::ready_event() const {
  MESHARD_RETURN_IF_ERROR(check_live("ready_event"));
  MESHARD_PJRT_ARGS(PJRT_Buffer_ReadyEvent, args);
  args.buffer = raw_;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(client_->api, PJRT_Buffer_ReadyEvent, args));
  return Event(ClientRef(client_), client_->api, args.event);
}

namespace {

std::string describe_buffer(const void* subject) {
  const auto& buffer = *static_cast<const Buffer*>(subject);
  return cat(buffer.type().to_string(), " on device ", buffer.device().id(),
             buffer.device().of_platform());
}

}  // namespace

Result<void> Buffer::await_ready() const {
  MESHARD_ASSIGN_OR_RETURN(Event ready, ready_event());
  PJRT_Event* raw = ready.raw();
  return internal::await_events(
      client_->api, {&raw, 1}, "PJRT_Event_Await",
      {.describe = describe_buffer, .subject = this, .client = client_, .device = device_});
}

Result<Event> Buffer::copy_to_host(std::span<std::byte> destination) const {
  MESHARD_RETURN_IF_ERROR(check_live("copy_to_host"));
  std::size_t needed = type_->host_size();
  if (destination.size() < needed)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[copy_to_host] the destination has ", destination.size(), " bytes, ",
                     type_->to_string(), " needs ", needed));
  if (needed == 0) return Event();
  MESHARD_PJRT_ARGS(PJRT_Buffer_ToHostBuffer, args);
  args.src = raw_;
  args.dst = destination.data();
  args.dst_size = destination.size();
  internal::PluginWork work;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(client_->api, PJRT_Buffer_ToHostBuffer, args));
  return Event(ClientRef(client_), client_->api, args.event);
}

Result<void> Buffer::read(std::span<std::byte> destination) const {
  MESHARD_RETURN_IF_ERROR(check_live("read"));
  std::size_t needed = type_->host_size();
  if (client_->rules.host_memory && bit_width(type_->element) >= 8 &&
      destination.size() >= needed) {
    // For large copies too: the plugin would do them in one thread of its pool.
    MESHARD_ASSIGN_OR_RETURN(HostView view, host_view());
    if (needed != 0) std::memcpy(destination.data(), view.bytes().data(), needed);
    return {};
  }
  MESHARD_ASSIGN_OR_RETURN(Event copied, copy_to_host(destination));
  return copied.await();
}

Result<HostView> Buffer::host_view() const {
  MESHARD_RETURN_IF_ERROR(check_live("host_view"));
  if (!client_->rules.host_memory)
    return Error(ErrorCode::kUnimplemented, cat("[host_view] the host cannot read the memory of ",
                                                client_->platform, " devices in place"));
  if (bit_width(type_->element) < 8)
    return Error(
        ErrorCode::kUnimplemented,
        cat("[host_view] ", type_->to_string(),
            " cannot be viewed in place: its elements are smaller than a byte and packed"));
  MESHARD_RETURN_IF_ERROR(await_ready());

  auto* shared = shared_.load(std::memory_order_acquire);
  if (shared == nullptr) {
    auto* fresh = new internal::SharedBuffer{client_->api, raw_};
    if (shared_.compare_exchange_strong(shared, fresh, std::memory_order_acq_rel))
      shared = fresh;
    else
      delete fresh;
  }
  // From here on, a failure releases everything that is held.
  MESHARD_RETURN_IF_ERROR(shared->hold());
  HostView view(ClientRef(client_), shared, {});
  MESHARD_ASSIGN_OR_RETURN(std::uintptr_t address, unsafe_pointer());
  view.bytes_ = {reinterpret_cast<const std::byte*>(address), type_->host_size()};
  return view;
}

Result<Event> Buffer::copy_raw_to_host(std::span<std::byte> destination,
                                       std::int64_t offset) const {
  MESHARD_RETURN_IF_ERROR(check_live("copy_raw_to_host"));
  MESHARD_ASSIGN_OR_RETURN(std::size_t size, device_size());
  if (offset < 0 || static_cast<std::size_t>(offset) > size ||
      destination.size() > size - static_cast<std::size_t>(offset))
    return Error(ErrorCode::kOutOfRange, cat("[copy_raw_to_host] bytes ", offset, "..",
                                             offset + static_cast<std::int64_t>(destination.size()),
                                             " are not inside the ", size, " bytes of the buffer"));
  if (destination.empty()) return Event();
  MESHARD_PJRT_ARGS(PJRT_Buffer_CopyRawToHost, args);
  args.buffer = raw_;
  args.dst = destination.data();
  args.offset = offset;
  args.transfer_size = static_cast<std::int64_t>(destination.size());
  internal::PluginWork work;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(client_->api, PJRT_Buffer_CopyRawToHost, args));
  return Event(ClientRef(client_), client_->api, args.event);
}

Result<Buffer> Buffer::copy_to_device(const Device& device) const {
  MESHARD_RETURN_IF_ERROR(check_live("copy_to_device"));
  if (client_->find(device.raw()) != &device || !device.addressable())
    return Error(ErrorCode::kInvalidArgument, cat("[copy_to_device] device ", device.id(),
                                                  " is not an addressable device of this client"));
  MESHARD_PJRT_ARGS(PJRT_Buffer_CopyToDevice, args);
  args.buffer = raw_;
  args.dst_device = device.raw();
  internal::PluginWork work;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(client_->api, PJRT_Buffer_CopyToDevice, args));
  internal::add_references(client_, 1);
  return Buffer(client_, args.dst_buffer, type_, &device);
}

Result<Buffer> Buffer::copy_to_memory(const Memory& memory) const {
  MESHARD_RETURN_IF_ERROR(check_live("copy_to_memory"));
  MESHARD_PJRT_ARGS(PJRT_Memory_AddressableByDevices, who);
  who.memory = memory.raw();
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(client_->api, PJRT_Memory_AddressableByDevices, who));
  const Device* device = who.num_devices == 0 ? nullptr : client_->find(who.devices[0]);
  if (device == nullptr)
    return Error(ErrorCode::kInvalidArgument, cat("[copy_to_memory] memory ", memory.id(),
                                                  " does not belong to a device of this client"));
  MESHARD_PJRT_ARGS(PJRT_Buffer_CopyToMemory, args);
  args.buffer = raw_;
  args.dst_memory = memory.raw();
  internal::PluginWork work;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(client_->api, PJRT_Buffer_CopyToMemory, args));
  internal::add_references(client_, 1);
  return Buffer(client_, args.dst_buffer, type_, device);
}

Result<void> Buffer::delete_now() {
  MESHARD_RETURN_IF_ERROR(check_live("delete_now"));
  // Before the call, so that no other thread uses the buffer during it.
  set_life(kDeleted);
  MESHARD_PJRT_ARGS(PJRT_Buffer_Delete, args);
  args.buffer = raw_;
  Result<void> done = MESHARD_PJRT_CALL(client_->api, PJRT_Buffer_Delete, args);
  if (!done.ok() && !plugin_says_deleted().value_or(true)) set_life(kLive);
  return done;
}

Result<bool> Buffer::plugin_says_deleted() const {
  if (raw_ == nullptr) return true;
  MESHARD_PJRT_ARGS(PJRT_Buffer_IsDeleted, args);
  args.buffer = raw_;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(client_->api, PJRT_Buffer_IsDeleted, args));
  return args.is_deleted;
}

Result<std::size_t> Buffer::device_size() const {
  MESHARD_RETURN_IF_ERROR(check_live("device_size"));
  MESHARD_PJRT_ARGS(PJRT_Buffer_OnDeviceSizeInBytes, args);
  args.buffer = raw_;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(client_->api, PJRT_Buffer_OnDeviceSizeInBytes, args));
  return args.on_device_size_in_bytes;
}

Result<std::uintptr_t> Buffer::unsafe_pointer() const {
  MESHARD_RETURN_IF_ERROR(check_live("unsafe_pointer"));
  MESHARD_PJRT_ARGS(PJRT_Buffer_UnsafePointer, args);
  args.buffer = raw_;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(client_->api, PJRT_Buffer_UnsafePointer, args));
  return args.buffer_pointer;
}

}  // namespace meshard::pjrt
