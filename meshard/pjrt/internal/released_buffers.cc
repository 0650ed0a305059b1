// Tested in tests/plugin/buffer_list_test.cc.
#include "meshard/pjrt/internal/released_buffers.h"

#include "meshard/base/thread_instance.h"
#include "meshard/pjrt/internal/client_state.h"

namespace meshard::pjrt::internal {

ReleasedBuffers& ReleasedBuffers::of_thread() {
  return meshard::internal::thread_instance<ReleasedBuffers>();
}

void ReleasedBuffers::add(ClientState* client, const DeviceList& devices,
                          std::span<PJRT_Buffer* const> buffers, std::size_t bytes) {
  if (&devices != devices_ || bytes_ + bytes * buffers.size() > kMostBytes ||
      buffers_.size() >= kMostArrays * buffers.size())
    destroy();
  client_ = client;
  devices_ = &devices;
  buffers_.insert(buffers_.end(), buffers.begin(), buffers.end());
  bytes_ += bytes * buffers.size();
}

void ReleasedBuffers::destroy() noexcept {
  if (buffers_.empty()) return;
  std::size_t per_array = devices_->size(), arrays = buffers_.size() / per_array;
  for (std::size_t device = 0; device < per_array; ++device)
    for (std::size_t i = 0; i < arrays; ++i)
      destroy_buffer(client_->api, buffers_[i * per_array + device]);
  buffers_.clear();
  for (const Device* device : devices_->devices())
    device->count_bytes(static_cast<std::int64_t>(bytes_ / per_array), false);
  bytes_ = 0;
  devices_ = nullptr;
  drop_references(client_, static_cast<long>(arrays));
}

}  // namespace meshard::pjrt::internal
