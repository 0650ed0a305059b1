// Tested in tests/plugin/buffer_list_test.cc.
#include "meshard/pjrt/buffer_list.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "meshard/pjrt/internal/client_state.h"
#include "meshard/pjrt/internal/launch_record.h"
#include "meshard/pjrt/internal/shared_buffer.h"
#include "meshard/pjrt/launch.h"

namespace meshard::pjrt {

using internal::BufferState;
using internal::SharedBuffer;

BufferList BufferList::of(std::span<Buffer> buffers) {
  std::vector<const Device*> devices;
  devices.reserve(buffers.size());
  for (const Buffer& buffer : buffers) {
    // Launches check lists as a whole.
    internal_check(
        buffer.own_.client == buffers[0].own_.client && buffer.own_.type == buffers[0].own_.type,
        "[buffer_list] the buffers have different types or clients");
    devices.push_back(&buffer.device());
  }
  BufferList list;
  BufferState& state = list.state_;
  state.client = buffers[0].own_.client;
  state.type = buffers[0].own_.type;
  state.life = BufferState::kLive;
  list.devices_ = state.client->intern(devices);
  list.bytes_ = state.type->host_size();
  list.raw_.reserve(buffers.size());
  for (Buffer& buffer : buffers) {
    list.raw_.push_back(std::exchange(buffer.raw_, nullptr));
    if (SharedBuffer* shared = buffer.own_.shared.exchange(nullptr)) {
      shared->next = state.shared;
      state.shared = shared;
    }
    buffer.own_.life = BufferState::kEmpty;
    // The list holds one reference.
    if (&buffer != buffers.data()) internal::drop_reference(buffer.own_.client);
    buffer.own_.client = nullptr;
  }
  return list;
}

std::vector<Buffer> BufferList::split() && {
  std::vector<Buffer> buffers;
  buffers.reserve(raw_.size());
  internal::add_references(state_.client, static_cast<long>(raw_.size()) - 1);
  for (std::size_t i = 0; i < raw_.size(); ++i)
    buffers.push_back(Buffer(state_.client, raw_[i], state_.type, &(*devices_)[i]));
  for (SharedBuffer* shared = state_.shared.exchange(nullptr); shared != nullptr;) {
    SharedBuffer* next = std::exchange(shared->next, nullptr);
    auto i = static_cast<std::size_t>(std::ranges::find(raw_, shared->raw) - raw_.begin());
    buffers[i].own_.shared = shared;
    shared = next;
  }
  set_life(BufferState::kEmpty);
  forget();
  return buffers;
}

void BufferList::count(bool lives) const noexcept {
  auto bytes = static_cast<std::int64_t>(bytes_);
  for (const Device* device : devices_->devices()) device->count_bytes(bytes, lives);
}

void BufferList::set_life(BufferState::Life life) const noexcept {
  bool was_live = is_live(), lives = life == BufferState::kLive;
  set_life_uncounted(life);
  if (was_live != lives) count(lives);
}

void BufferList::release() noexcept {
  set_life(BufferState::kEmpty);  // before the client and its devices may go
  internal::destroy_buffers(state_.client->api, state_, {raw_.data(), raw_.size()});
  internal::drop_reference(state_.client);
  forget();
}

void BufferList::forget() noexcept {
  state_.life.store(BufferState::kEmpty, std::memory_order_relaxed);
  state_.client = nullptr;
  devices_ = nullptr;
  raw_.clear();
}

void BufferList::reorder(const DeviceList& devices, std::span<const std::uint32_t> positions) {
  InlineVector<PJRT_Buffer*, 8> ordered;
  ordered.reserve(raw_.size());
  for (std::uint32_t position : positions) ordered.push_back(raw_[position]);
  raw_ = std::move(ordered);
  devices_ = &devices;
}

bool BufferList::await_launch() const {
  if (launch_ == 0) return false;
  internal::ClientState& client = *state_.client;
  if (client.is_known_success(launch_)) return true;
  internal::LaunchRecord* record = nullptr;
  {
    std::lock_guard lock(client.launch_mutex);
    record = client.in_flight.newest();  // the likeliest
    while (record != nullptr && record->number != launch_) record = record->older;
    if (record == nullptr) return false;
    record->references.fetch_add(1, std::memory_order_relaxed);
  }
  if (!record->await_success()) {
    internal::drop_launch(record);
    return false;
  }
  // Here, where the devices are idle, rather than in the next launch.
  std::lock_guard lock(client.launch_mutex);
  if (record->is_listed) client.in_flight.drop(record);
  client.reuse(record);
  return true;
}

bool BufferList::plugin_says_deleted() const {
  for (std::size_t i = 0; i < size(); ++i)
    if ((*this)[i].plugin_says_deleted().value_or(true)) return true;
  return false;
}

Result<void> BufferList::delete_now() {
  if (!*this) return Error(ErrorCode::kInvalidArgument, "[delete_now] the buffer list is empty");
  MESHARD_RETURN_IF_ERROR((*this)[0].check_live("delete_now"));
  // Before the calls, so that no other thread uses the buffers during them.
  set_life(BufferState::kDeleted);
  std::optional<Error> failed;
  for (PJRT_Buffer* buffer : raw_) {
    MESHARD_PJRT_ARGS(PJRT_Buffer_Delete, args);
    args.buffer = buffer;
    Result<void> done = MESHARD_PJRT_CALL(state_.client->api, PJRT_Buffer_Delete, args);
    if (!done.ok() && !failed) failed = done.error();
  }
  if (!failed) return {};
  if (!plugin_says_deleted()) set_life(BufferState::kLive);
  return *failed;
}

void BufferBatch::add(BufferList& list) {
  client_ = list.state_.client;
  devices_ = list.devices_;
  buffers_.insert(buffers_.end(), list.raw_.begin(), list.raw_.end());
  if (list.is_live()) bytes_ += list.bytes_ * list.raw_.size();
  list.forget();
}

void BufferBatch::destroy_on(std::size_t device) const noexcept {
  const PJRT_Api* api = client_->api;
  const std::size_t step = devices_->size();
  PJRT_Buffer* const* end = buffers_.data() + buffers_.size();
  for (PJRT_Buffer* const* at = buffers_.data() + device; at < end; at += step)
    internal::destroy(api, *at);
}

void BufferBatch::destroy() noexcept {
  if (buffers_.empty()) return;
  for (std::size_t device = 0; device < devices_->size(); ++device) destroy_on(device);
  forget();
}

void BufferBatch::forget() noexcept {
  const std::size_t per_list = devices_->size(), lists = buffers_.size() / per_list;
  buffers_.clear();
  if (bytes_ > 0)
    for (const Device* device : devices_->devices())
      device->count_bytes(static_cast<std::int64_t>(bytes_ / per_list), false);
  bytes_ = 0;
  devices_ = nullptr;
  internal::drop_references(client_, static_cast<long>(lists));
}

}  // namespace meshard::pjrt
