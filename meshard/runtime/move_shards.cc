#include "meshard/runtime/move_shards.h"

#include "meshard/runtime/counters.h"
#include "meshard/runtime/placement.h"

namespace meshard {
namespace {

// Which shard of `source` holds what position `position` of `target` wants; replicas take turns, so
// that no device sends to all.
std::int64_t sender(const Sharding* source, const Sharding& target, std::int64_t position) {
  if (!source) return 0;
  IntVector tile;
  for (std::size_t d = 0; d < source->rank(); ++d) tile.push_back(target.tile_index(d, position));
  return source->position_of(tile, target.replica_id(position) % source->num_replicas());
}

}  // namespace

Result<pjrt::Buffer> buffer_on(const pjrt::Client& client, const pjrt::Buffer& source,
                               const pjrt::Device& device) {
  if (source.device().id() != device.id()) {
    internal::count(internal::counters().buffers_moved);
    internal::count(internal::counters().bytes_moved, source.type().host_size());
    return source.copy_to_device(device);
  }
  if (source.type().element_count() == 0) return client.uninitialised_buffer(source.type(), device);
  MESHARD_ASSIGN_OR_RETURN(pjrt::HostView view, source.host_view());
  // While it is viewed the plugin does not reuse the memory, even if the source is donated.
  auto held = std::make_shared<pjrt::HostView>(std::move(view));
  void* address = const_cast<std::byte*>(held->bytes().data());
  return client.view_device_memory(address, source.type(), device, [held] {});
}

bool has_same_tiles(const Sharding* source, const Sharding& target) {
  if (!source) return target.is_fully_replicated();
  if (!source->unreduced_axes().empty() || !target.unreduced_axes().empty()) return false;
  for (std::size_t d = 0; d < std::max(source->rank(), target.rank()); ++d)
    if (source->num_tiles(d) != target.num_tiles(d)) return false;
  return true;
}

Result<StoragePtr> move_shards(const pjrt::Client& client, const StoragePtr& source,
                               const Sharding& target, SourceLocation where) {
  const auto& array = static_cast<const DeviceArray&>(*source);
  if (std::string gone = array.gone(); !gone.empty())
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[transfer] the value ", array.type(), " is gone: ", gone), where);
  DeviceArray::Buffers buffers;
  std::int64_t positions = target.mesh().size();
  buffers.reserve(static_cast<std::size_t>(positions));
  for (std::int64_t p = 0; p < positions; ++p) {
    const pjrt::Device& device = device_of(client, target.mesh().device_id(p), where);
    const pjrt::Buffer& shard =
        array.buffers()[static_cast<std::size_t>(sender(array.sharding(), target, p))];
    MESHARD_ASSIGN_OR_RETURN(pjrt::Buffer moved, buffer_on(client, shard, device));
    buffers.push_back(std::move(moved));
  }
  return make_storage<DeviceArray>(array.type(), target, std::move(buffers));
}

}  // namespace meshard
