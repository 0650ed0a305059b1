#include "meshard/runtime/internal/device_to_device.h"

#include <algorithm>
#include <map>
#include <set>

#include "meshard/graph/leaf.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/copies.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/exchange.h"
#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/internal/pad_on_device.h"
#include "meshard/runtime/internal/reshard.h"
#include "meshard/runtime/internal/reshard_by_copy.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

Error not_between_devices() {
  return Error(ErrorCode::kUnimplemented,
               "[transfer] these tiles cannot be copied directly between devices");
}

// The same tiles, over a mesh of the devices of `mesh`.
Sharding on_the_devices_of(const Sharding& sharding, const Mesh& mesh) {
  std::vector<std::int64_t> ids;
  for (std::int64_t id : mesh.device_ids()) ids.push_back(id);
  std::span<const MeshAxis> axes = sharding.mesh().axes();
  return Sharding(
      Mesh({axes.begin(), axes.end()}, std::move(ids)).with_device_type(mesh.device_type()),
      sharding.spec());
}

// False if the storage is on another platform or a client that was replaced; it must then go
// through the host.
bool is_reached_by(const pjrt::Client& client, const Storage& storage) {
  const auto& array = static_cast<const DeviceArray&>(storage);
  if (!is_on_this_client(storage)) return false;
  return !array.buffers() || array.buffers().is_of(client.ref());
}

const DeviceArray& array_on_devices(const Value& value) {
  return static_cast<const DeviceArray&>(*value.storage());
}

// Sends `shard_for(position)` to the device of each position of the target in this process.
template <class F>
Result<std::vector<pjrt::Buffer>> send_to_devices(const pjrt::Client& client,
                                                  const Sharding& target, SourceLocation where,
                                                  F shard_for) {
  std::vector<pjrt::Buffer> buffers;
  std::vector<LocalPosition> positions = local_positions(client, target.mesh(), where);
  buffers.reserve(positions.size());
  for (const LocalPosition& at : positions) {
    MESHARD_ASSIGN_OR_RETURN(pjrt::Buffer moved,
                             buffer_on(client, shard_for(at.position), *at.device));
    buffers.push_back(std::move(moved));
  }
  return buffers;
}

// @pre has_same_tiles; the tiles for devices of this process are in this process
Result<std::vector<pjrt::Buffer>> send_shards(const pjrt::Client& client, const Value& value,
                                              const Sharding& target, SourceLocation where) {
  const DeviceArray& array = array_on_devices(value);
  const Sharding* source = array.sharding();
  return send_to_devices(client, target, where, [&](std::int64_t p) {
    if (!source) return array.buffers()[0];
    // A tile that is already there is reused. Otherwise the replicas take turns, so that no device
    // sends to all others.
    std::optional<std::int64_t> there = source->mesh().position(target.mesh().device_id(p));
    if (there && tile_number(*source, *there) == tile_number(target, p))
      return array.buffers()[*array.shard_at(*there)];
    IntVector tile;
    for (std::size_t d = 0; d < source->rank(); ++d) tile.push_back(target.tile_index(d, p));
    std::int64_t replica = target.replica_id(p) % source->num_replicas();
    return array.buffers()[*array.shard_at(source->position_of(tile, replica))];
  });
}

Result<std::vector<pjrt::Buffer>> send_tiles(const pjrt::Client& client,
                                             const std::vector<Tensor>& tiles,
                                             const Sharding& target, SourceLocation where) {
  return send_to_devices(client, target, where, [&](std::int64_t p) {
    const Tensor& tile = tiles[static_cast<std::size_t>(tile_number(target, p))];
    return array_on_devices(tile.value()).buffers()[0];
  });
}

bool is_in_one_other_process(const pjrt::Client& client, const Mesh& mesh) {
  return reach_of(client, mesh) == Reach::kElsewhere && processes_of(client, mesh).size() == 1;
}

// A value that is entirely in other processes.
StoragePtr nothing_here(const Platforms& platforms, const TensorType& type,
                        const Sharding& target) {
  return make_storage<DeviceArray>(platforms, type, target, std::vector<pjrt::Buffer>());
}

// Whether moving a value between these sets of devices needs more than the devices of this process.
bool crosses_processes(const pjrt::Client& client, const Mesh& source, const Mesh& target) {
  return reach_of(client, source) != Reach::kHere || reach_of(client, target) != Reach::kHere;
}

// Each process that has devices of the target receives its tiles from those that have them, each
// tile once.
Result<std::vector<pjrt::Buffer>> exchange_tiles(AcrossProcesses& across, const Value& value,
                                                 const Sharding& target, SourceLocation where) {
  const pjrt::Client client = across.client();
  const TensorType& type = value.type();
  const TensorType shard_type = shard_type_of(type, target);
  std::vector<WantedPart> wanted;
  std::set<std::pair<int, std::int64_t>> known;                      // process and tile
  std::map<std::int64_t, HostArray> blocks;                          // by tile
  std::vector<std::pair<std::int64_t, const pjrt::Device*>> places;  // tile and device
  for (std::int64_t p = 0; p < target.mesh().size(); ++p) {
    const pjrt::Device& device = device_of(client, target.mesh().device_id(p), where);
    const std::int64_t tile = tile_number(target, p);
    if (device.addressable()) places.push_back({tile, &device});
    if (!known.insert({device.process_index(), tile}).second) continue;
    WantedPart part{device.process_index(), box_of(target, type.shape, p), nullptr,
                    shard_type.shape};
    if (device.addressable())
      part.destination =
          blocks.emplace(tile, HostArray::zeros(shard_type)).first->second.mutable_bytes();
    wanted.push_back(std::move(part));
  }
  exchange(across, array_on_devices(value), wanted, where);
  const bool may_write = blocks.size() == places.size();  // no two devices share a block
  std::vector<pjrt::Buffer> buffers;
  for (const auto& [tile, device] : places) {
    const HostArray& block = blocks.at(tile);
    buffers.push_back(internal::give_to_device(client, block, block.bytes(), shard_type, may_write,
                                               *device, where));
    internal::count(internal::counters().buffers_moved);
    internal::count(internal::counters().bytes_moved,
                    static_cast<std::uint64_t>(shard_type.bytes()));
  }
  return buffers;
}

// On a platform that connects the processes itself. A program replicates the value on its own
// devices, and each process sends the parts of its devices of the target from its host memory.
Tensor move_with_others(Runtime& runtime, const pjrt::Client& client, const Value& value,
                        const Sharding& target, SourceLocation where) {
  const Sharding& present = *value.storage()->sharding();
  std::vector<int> from = processes_of(client, present.mesh());
  std::vector<int> to = processes_of(client, target.mesh());
  if (!std::ranges::includes(from, to))
    throw Error(ErrorCode::kUnimplemented,
                cat("[transfer] ", value.type(), " is on devices of ", names_of_processes(from),
                    " and should move to those of ", names_of_processes(to), ": on platform ",
                    client.name(),
                    " only processes that have a part of a value can receive it; mark it on a mesh "
                    "with devices of all of them"),
                where);
  const int rank = client.process_index();
  if (!std::ranges::binary_search(from, rank))
    return make_array(value.type(),
                      make_storage<DeviceArray>(runtime.platforms, value.type(), target,
                                                std::vector<pjrt::Buffer>()),
                      where);
  HostArray array = value.storage()->to_host(where);
  return make_array(value.type(), place(runtime.platforms, array, target, where), where);
}

}  // namespace

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

Tensor move_to(Runtime& runtime, const Value& value, const Sharding& target, SourceLocation where) {
  if (!value.storage()->gone().empty())
    (void)value.storage()->to_host(where);  // throws with the reason
  Platforms& platforms = runtime.platforms;
  const pjrt::Client& client = platforms.client(target.mesh(), where);
  auto through_host = [&](const HostArray& array) {
    return make_array(value.type(), place(platforms, array, target, where), where);
  };
  // Never split: the partitioner drops the sharding of an empty value.
  if (value.type().size() == 0) return through_host(HostArray::zeros(value.type()));
  StoragePtr storage = nearest_copy(value, target);
  if (!is_reached_by(client, *storage)) return through_host(storage->to_host(where));
  Tensor source = make_array(value.type(), storage, value->where());
  const Sharding* present = storage->sharding();
  Result<std::vector<pjrt::Buffer>> moved = not_between_devices();
  // On the same devices, the result needs buffers of its own, because views cannot be donated.
  if (present && present->mesh().same_devices(target.mesh())) {
    // If the devices belong to one other process, it may need no program, and then announces none.
    if (is_plain(target) && is_in_one_other_process(client, target.mesh()))
      return make_array(value.type(), nothing_here(platforms, value.type(), target), where);
    if (value.type().bytes() >= kLeastCopiedBytes) {
      Result<StoragePtr> copied =
          reshard_by_copy(platforms, array_on_devices(source.value()), target, where);
      if (copied.ok()) return make_array(value.type(), *std::move(copied), where);
    }
    return reshard(runtime, source.value(), target, where);
  }
  AcrossProcesses* across = platforms.across();
  if (across && !(across->client() == client)) across = nullptr;
  if (present && !across && crosses_processes(client, present->mesh(), target.mesh()))
    return move_with_others(runtime, client, source.value(), target, where);
  bool in_place = present && has_tiles_in_place(*present, target);
  if (present && !in_place)
    if (std::optional<Sharding> part = part_in_place(*present, target))
      return reshard(runtime, move_to(runtime, source.value(), *part, where).value(), target,
                     where);
  if (across && present && !in_place && crosses_processes(client, present->mesh(), target.mesh()))
    moved = exchange_tiles(*across, source.value(), target, where);
  else if (in_place || has_same_tiles(present, target))
    moved = send_shards(client, source.value(), target, where);
  else if (!present)
    moved =
        send_tiles(client, tiles_on_device(runtime, source.value(), target, where), target, where);
  else if (present->mesh().size() == target.mesh().size())
    moved = send_shards(
        client,
        reshard(runtime, source.value(), on_the_devices_of(target, present->mesh()), where).value(),
        target, where);
  if (!moved.ok() && moved.error().code() != ErrorCode::kUnimplemented)
    throw moved.error().at(where);
  if (!moved.ok()) return through_host(storage->to_host(where));
  return make_array(value.type(),
                    make_storage<DeviceArray>(platforms, value.type(), target, *std::move(moved)),
                    where);
}

}  // namespace meshard
