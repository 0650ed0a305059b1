#include "meshard/runtime/internal/device_to_device.h"

#include <algorithm>
#include <map>
#include <set>

#include "meshard/graph/leaf.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/buffer_on.h"
#include "meshard/runtime/internal/copies.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/internal/receive_tiles.h"
#include "meshard/runtime/internal/reshard.h"
#include "meshard/runtime/internal/reshard_by_copy.h"
#include "meshard/runtime/internal/transfer_by_pieces.h"
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

// Whether a device of the target has its tile already, and the tile is not computed yet. A view of
// it would wait for it.
bool waits_for_views(const DeviceArray& array, const Sharding& from, const Sharding& target) {
  for (std::int64_t p = 0; p < target.mesh().size(); ++p) {
    std::optional<std::int64_t> there = from.mesh().position(target.mesh().device_id(p));
    if (!there || tile_number(from, *there) != tile_number(target, p)) continue;
    Result<pjrt::Event> ready = array.buffers()[*array.shard_at(*there)].ready_event();
    if (ready.ok() && !ready->is_ready().value_or(true)) return true;
  }
  return false;
}

bool shares_devices(const Mesh& a, const Mesh& b) {
  for (std::int64_t id : a.device_ids())
    if (b.position(id)) return true;
  return false;
}

// With more pieces for a tile, the value's own devices reshard it first, all at once.
constexpr std::int64_t kMostPiecesOfTile = 8;

// At most as many pieces as one tile has.
std::int64_t pieces_of_tile(const Sharding& from, const Sharding& target, const Shape& shape) {
  const IntVector source = from.shard_shape(shape), tile = target.shard_shape(shape);
  std::int64_t count = 1;
  for (std::size_t d = 0; d < tile.size(); ++d) {
    const bool aligned = tile[d] % source[d] == 0 || source[d] % tile[d] == 0;
    const std::int64_t most = (tile[d] - 1) / source[d] + (aligned ? 1 : 2);
    count *= std::min(most, from.num_tiles(d));
  }
  return count;
}

// Shards that are on their devices, or pieces of them that are under way.
struct Sent {
  std::vector<pjrt::Buffer> shards;
  std::optional<PiecesUnderWay> pieces;
};

// Between devices of this process, without the host and without a wait.
// @pre `target` has no unreduced axes
Result<Sent> send_here(Runtime& runtime, const pjrt::Client& client, const Value& value,
                       const Sharding& target, SourceLocation where) {
  const DeviceArray& array = array_on_devices(value);
  const Shape& shape = value.type().shape;
  const auto rank = static_cast<std::size_t>(shape.rank());
  const Sharding from =
      array.sharding() ? *array.sharding()
                       : Sharding::replicated(Mesh({{"device", 1}}, {array.device_id(0)})
                                                  .with_device_type(target.mesh().device_type()),
                                              rank);
  const auto resharded_first = [&](const Sharding& nearer) {
    return send_here(runtime, client, reshard(runtime, value, nearer, where).value(), target,
                     where);
  };
  if (!from.unreduced_axes().empty()) return resharded_first(from.with_unreduced({}));
  // Of a value with shards in other processes, the tiles are in place.
  if (has_same_tiles(&from, target) &&
      (!array.has_all_shards() || !waits_for_views(array, from, target))) {
    Result<std::vector<pjrt::Buffer>> sent = send_shards(client, value, target, where);
    // Memory that the host cannot read has no views.
    bool needs_program = !sent.ok() && sent.error().code() == ErrorCode::kUnimplemented &&
                         shares_devices(from.mesh(), target.mesh());
    if (sent.ok()) return Sent{*std::move(sent), std::nullopt};
    if (!needs_program) return sent.error();
  }
  if (pieces_of_tile(from, target, shape) > kMostPiecesOfTile) {
    Sharding nearer = from.mesh().size() == target.mesh().size()
                          ? on_the_devices_of(target, from.mesh())
                          : nested_for(from, target);
    if (pieces_of_tile(nearer, target, shape) <= kMostPiecesOfTile) return resharded_first(nearer);
  }
  MESHARD_ASSIGN_OR_RETURN(
      PiecesUnderWay pieces,
      PiecesUnderWay::start(runtime, client, StoragePtr(value.storage()), from.with_rank(rank),
                            target.with_rank(rank), where));
  return Sent{{}, std::move(pieces)};
}

// The rest of a transfer in pieces.
class AssembledLater final : public StartedTransfer::Rest {
 public:
  AssembledLater(const Platforms& platforms, TensorType type, Sharding target,
                 PiecesUnderWay pieces, SourceLocation where)
      : platforms_(platforms),
        type_(std::move(type)),
        target_(std::move(target)),
        pieces_(std::move(pieces)),
        where_(where) {}
  Tensor finish() override {
    Result<std::vector<pjrt::Buffer>> tiles = pieces_.assemble(where_);
    if (!tiles.ok()) throw tiles.error().at(where_);
    return make_array(
        type_, make_storage<DeviceArray>(platforms_, type_, target_, *std::move(tiles)), where_);
  }

 private:
  const Platforms& platforms_;
  TensorType type_;
  Sharding target_;
  PiecesUnderWay pieces_;
  SourceLocation where_;
};

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

Tensor move_to(Runtime& runtime, const Value& value, const Sharding& target, SourceLocation where) {
  return start_move(runtime, value, target, where).value();
}

StartedTransfer start_move(Runtime& runtime, const Value& value, const Sharding& target,
                           SourceLocation where) {
  if (!value.storage()->gone().empty())
    (void)value.storage()->to_host(where);  // throws with the reason
  Platforms& platforms = runtime.platforms;
  const pjrt::Client& client = platforms.client(target.mesh(), where);
  auto through_host = [&](const HostArray& array) -> StartedTransfer {
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
  if (!target.unreduced_axes().empty())
    return reshard(runtime,
                   move_to(runtime, source.value(), target.with_unreduced({}), where).value(),
                   target, where);
  bool in_place = present && has_tiles_in_place(*present, target);
  if (present && !in_place)
    if (std::optional<Sharding> part = part_in_place(*present, target))
      return reshard(runtime, move_to(runtime, source.value(), *part, where).value(), target,
                     where);
  if (across && present && !in_place && crosses_processes(client, present->mesh(), target.mesh()))
    moved = receive_tiles(*across, array_on_devices(source.value()), target, where);
  else if (Result<Sent> sent = send_here(runtime, client, source.value(), target, where);
           !sent.ok())
    moved = sent.error();
  else if (sent->pieces)
    return StartedTransfer(std::make_unique<AssembledLater>(platforms, value.type(), target,
                                                            *std::move(sent->pieces), where));
  else
    moved = std::move(sent->shards);
  if (!moved.ok() && moved.error().code() != ErrorCode::kUnimplemented)
    throw moved.error().at(where);
  if (!moved.ok()) return through_host(storage->to_host(where));
  return make_array(value.type(),
                    make_storage<DeviceArray>(platforms, value.type(), target, *std::move(moved)),
                    where);
}

}  // namespace meshard
