// Tested in meshard/runtime/transfer_test.cc.
#include "meshard/runtime/internal/buffer_on.h"

#include <memory>

#include "meshard/base/cat.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/event_recorder.h"

namespace meshard {

Result<pjrt::Buffer> buffer_on(const pjrt::Client& client, const pjrt::BufferView& source,
                               const pjrt::Device& device) {
  if (!source.is_of(client.ref()))
    return Error(ErrorCode::kUnimplemented,
                 cat("[runtime] the data is not on platform ", client.name(),
                     ", or is on a client that was replaced"));
  if (source.device().id() != device.id()) {
    internal::count(internal::counters().buffers_moved);
    internal::count(internal::counters().bytes_moved, source.type().host_size());
    internal::TransferSpan span;
    if (internal::records_events())
      span.begin("move", cat(source.type(), " from device ", source.device().id()), device,
                 source.type().host_size());
    Result<pjrt::Buffer> moved = source.copy_to_device(device);
    if (moved.ok()) span.end_when_ready(*moved);
    return moved;
  }
  if (source.type().element_count() == 0) return client.uninitialized_buffer(source.type(), device);
  MESHARD_ASSIGN_OR_RETURN(pjrt::HostView view, source.host_view());
  // While a view exists, the plugin does not reuse the memory, even if the source is donated.
  auto held = std::make_shared<pjrt::HostView>(std::move(view));
  void* address = const_cast<std::byte*>(held->bytes().data());
  return client.view_device_memory(address, source.type(), device, [held] {});
}

}  // namespace meshard
