// Values that move to devices of other processes: each process receives the tiles of its devices,
// each tile once, from the processes that have them.
// Tested in tests/processes/check_pipelines.py.
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "meshard/pjrt/host_to_device_transfer.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/across_processes.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/exchange.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

// A tile of this process, from the first message to the copies on its devices.
struct ComingTile {
  explicit ComingTile(const TensorType& type) : block(HostArray::zeros(type)) {}
  HostArray block;  // with the padding of the shard
  std::vector<pjrt::HostToDeviceTransfer> devices;
};

// On the thread of the messages.
void give_to_devices(const std::shared_ptr<ComingTile>& tile, const Result<void>& outcome) {
  std::span bytes(tile->block.bytes(), static_cast<std::size_t>(tile->block.size_in_bytes()));
  for (const pjrt::HostToDeviceTransfer& device : tile->devices) {
    Result<void> done = outcome;
    if (done.ok()) {
      Result<pjrt::Event> sent = device.send(0, bytes, 0, /*is_last=*/true);
      // The plugin reads the block until then.
      done = sent.ok() ? sent->on_ready([tile](const Result<void>&) {}) : sent.error();
    }
    if (!done.ok()) (void)device.set_error(0, done.error());
  }
}

}  // namespace

Result<std::vector<pjrt::Buffer>> AcrossProcesses::receive(const DeviceArray& source,
                                                           const Sharding& target,
                                                           SourceLocation where) {
  const TensorType& type = source.type();
  const TensorType shard_type = shard_type_of(type, target);
  const pjrt::ArrayType array_type{element_type_of(type.dtype),
                                   {shard_type.shape.begin(), shard_type.shape.end()}};
  std::vector<WantedPart> wanted;
  std::set<std::pair<int, std::int64_t>> known;               // process and tile
  std::map<std::int64_t, std::shared_ptr<ComingTile>> tiles;  // of this process
  std::vector<pjrt::Buffer> buffers;
  for (std::int64_t p = 0; p < target.mesh().size(); ++p) {
    const pjrt::Device& device = device_of(client(), target.mesh().device_id(p), where);
    const std::int64_t number = tile_number(target, p);
    const bool is_new = known.insert({device.process_index(), number}).second;
    if (is_new)
      wanted.push_back(
          {device.process_index(), box_of(target, type.shape, p), nullptr, shard_type.shape, {}});
    if (!device.addressable()) continue;
    std::shared_ptr<ComingTile>& tile = tiles[number];
    if (is_new) {
      tile = std::make_shared<ComingTile>(shard_type);
      wanted.back().destination = tile->block.mutable_bytes();
      wanted.back().done = [tile](const Result<void>& outcome) { give_to_devices(tile, outcome); };
    }
    internal::TransferSpan span;
    if (internal::records_events())
      span.begin("receive", type.to_string(), device,
                 static_cast<std::uint64_t>(shard_type.bytes()), where);
    MESHARD_ASSIGN_OR_RETURN(pjrt::HostToDeviceTransfer transfer,
                             client().begin_transfer(std::span(&array_type, 1), device));
    MESHARD_ASSIGN_OR_RETURN(pjrt::Buffer buffer, transfer.take_buffer(0));
    span.end_when_ready(buffer);
    tile->devices.push_back(std::move(transfer));
    buffers.push_back(std::move(buffer));
    internal::count(internal::counters().buffers_moved);
    internal::count(internal::counters().bytes_moved,
                    static_cast<std::uint64_t>(shard_type.bytes()));
  }
  start_exchange(*this, source, wanted, where);
  return buffers;
}

}  // namespace meshard
