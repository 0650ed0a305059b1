// Tested in tests/plugin/buffer_list_test.cc.
#include "meshard/pjrt/internal/released_buffers.h"

#include "meshard/base/thread_instance.h"
#include "meshard/pjrt/internal/client_state.h"
#include "meshard/pjrt/internal/release_thread.h"

namespace meshard::pjrt::internal {

void ReleasedBatch::destroy_on(std::size_t device) const noexcept {
  const PJRT_Api* api = client->api;
  const std::size_t step = devices->size();
  PJRT_Buffer* const* end = buffers.data() + buffers.size();
  for (PJRT_Buffer* const* at = buffers.data() + device; at < end; at += step)
    destroy_buffer(api, *at);
}

void ReleasedBatch::destroy() noexcept {
  for (std::size_t device = 0, count = device_count(); device < count; ++device) destroy_on(device);
  forget();
}

void ReleasedBatch::forget() noexcept {
  if (buffers.empty()) return;
  std::size_t per_array = devices->size(), arrays = buffers.size() / per_array;
  buffers.clear();
  if (bytes > 0)
    for (const Device* device : devices->devices())
      device->count_bytes(static_cast<std::int64_t>(bytes / per_array), false);
  bytes = 0;
  devices = nullptr;
  drop_references(client, static_cast<long>(arrays));
}

ReleasedBuffers& ReleasedBuffers::of_thread() {
  return meshard::internal::thread_instance<ReleasedBuffers>();
}

void ReleasedBuffers::add(ClientState* client, const DeviceList& devices,
                          std::span<PJRT_Buffer* const> buffers, std::size_t bytes) {
  if (&devices != batch_.devices || batch_.bytes + bytes * buffers.size() > kMostBytes ||
      batch_.buffers.size() >= kMostArrays * buffers.size()) {
    if (!ReleaseThread::take(batch_)) batch_.destroy();
  }
  batch_.client = client;
  batch_.devices = &devices;
  batch_.buffers.insert(batch_.buffers.end(), buffers.begin(), buffers.end());
  batch_.bytes += bytes * buffers.size();
}

bool ReleasedBuffers::is_due() const {
  bool dead = batch_.bytes == 0;  // donated: the plugin has little to do
  return dead || batch_.buffers.size() >= ReleaseThread::kLeastBuffers;
}

void ReleasedBuffers::give_up() noexcept {
  if (ReleaseThread::take(batch_)) return;
  if (is_due() || !ReleaseThread::runs()) batch_.destroy();
}

ReleasedBatch ReleasedBuffers::take() {
  if (!is_due()) return {};
  ReleasedBatch taken = std::move(batch_);
  batch_.buffers = std::exchange(spare_, {});
  return taken;
}

void ReleasedBuffers::destroy() noexcept {
  batch_.destroy();
  ReleaseThread::drain();
}

}  // namespace meshard::pjrt::internal
