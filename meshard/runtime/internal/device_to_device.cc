#include "meshard/runtime/internal/device_to_device.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "meshard/graph/leaf.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/across_processes/shared_fabric.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/fabric.h"
#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/internal/move_plan.h"
#include "meshard/runtime/internal/placement.h"
#include "meshard/runtime/internal/read_whole.h"
#include "meshard/runtime/internal/reshard.h"
#include "meshard/runtime/internal/transfer_by_pieces.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

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

// The sharding of a value on devices, or one over its only device.
Sharding sharding_of(const DeviceArray& array, const Mesh& target) {
  if (array.sharding()) return *array.sharding();
  return Sharding::replicated(
      Mesh({{"device", 1}}, {array.device_id(0)}).with_device_type(target.device_type()),
      static_cast<std::size_t>(array.type().rank()));
}

// Takes the steps of one move.
class Mover {
 public:
  Mover(Runtime& runtime, const pjrt::Client& client, SourceLocation where)
      : runtime_(runtime),
        client_(client),
        fabric_(runtime.platforms.fabric(client)),
        where_(where) {}

  std::vector<MoveStep> route(const DeviceArray& array, const Sharding& target) const {
    const Sharding* present = array.sharding();
    RouteOptions options{.is_sharded = present != nullptr};
    if (present) options.exchange = fabric_.exchange_between(present->mesh(), target.mesh());
    return plan_route(sharding_of(array, target.mesh()), target, array.type().shape, options);
  }

  /// Unimplemented: not without the host.
  Result<StartedTransfer> start(const MoveStep& step, const Value& value) const {
    if (step.way == MoveStep::Way::kReshard)
      return StartedTransfer(reshard(runtime_, value, step.to, where_));
    if (step.way == MoveStep::Way::kCarry) return carry(value, step.to);
    if (step.way == MoveStep::Way::kReadAndPlace)
      return StartedTransfer(read_and_place(value, step.to));
    MESHARD_ASSIGN_OR_RETURN(std::vector<pjrt::Buffer> tiles,
                             fabric_.receive(array_on_devices(value), step.to, where_));
    return StartedTransfer(stored(value.type(), step.to, std::move(tiles)));
  }

  /// A step on the same devices that is the only one. The result needs buffers of its own, because
  /// views cannot be donated.
  Tensor rearranged(const Value& value, const Sharding& target) const {
    // If the devices belong to one other process, it may need no program, and then announces none.
    if (fabric_.is_shared() && is_plain(target) && is_in_another_process(target.mesh()))
      return stored(value.type(), target, {});
    if (value.type().bytes() >= kLeastCopiedBytes && fabric_.has_all_devices(target.mesh())) {
      Result<StoragePtr> copied =
          reshard_by_copy(runtime_.platforms, array_on_devices(value), target, where_);
      if (copied.ok()) return make_array(value.type(), *std::move(copied), where_);
    }
    return reshard(runtime_, value, target, where_);
  }

 private:
  bool is_in_another_process(const Mesh& mesh) const {
    const std::vector<int> ranks = processes_of(client_, mesh);
    return ranks.size() == 1 && ranks[0] != client_.process_index();
  }

  Tensor stored(const TensorType& type, const Sharding& target,
                std::vector<pjrt::Buffer> buffers) const {
    return make_array(
        type, make_storage<DeviceArray>(runtime_.platforms, type, target, std::move(buffers)),
        where_);
  }

  // Between devices of this process, or where all tiles are in place, without a wait.
  Result<StartedTransfer> carry(const Value& value, const Sharding& target) const {
    const DeviceArray& array = array_on_devices(value);
    const Sharding from = sharding_of(array, target.mesh());
    const auto start = [&](bool views) {
      return PiecesUnderWay::start(runtime_, client_, StoragePtr(value.storage()), from, target,
                                   views, where_);
    };
    // Of a value with shards in other processes, the tiles are in place.
    const bool views = has_same_tiles(&from, target) && (!fabric_.has_all_devices(from.mesh()) ||
                                                         !waits_for_views(array, from, target));
    Result<StartedTransfer> started = start(views);
    // Memory that the host cannot read has no views.
    if (!started.ok() && started.error().code() == ErrorCode::kUnimplemented && views &&
        shares_devices(from.mesh(), target.mesh()))
      return start(/*views=*/false);
    return started;
  }

  // Each process of the value reads it, and sends the parts of its devices of the target.
  Tensor read_and_place(const Value& value, const Sharding& target) const {
    std::vector<int> from = processes_of(client_, value.storage()->sharding()->mesh());
    std::vector<int> to = processes_of(client_, target.mesh());
    if (!std::ranges::includes(from, to))
      throw Error(
          ErrorCode::kUnimplemented,
          cat("[transfer] ", value.type(), " is on devices of ", names_of_processes(from),
              " and should move to those of ", names_of_processes(to), ": on platform ",
              client_.name(),
              " only processes that have a part of a value can receive it; mark it on a mesh "
              "with devices of all of them"),
          where_);
    if (!std::ranges::binary_search(from, client_.process_index()))
      return stored(value.type(), target, {});
    HostArray array = read_whole(runtime_, *value.storage(), where_);
    return make_array(value.type(), place(runtime_.platforms, array, target, where_), where_);
  }

  Runtime& runtime_;
  const pjrt::Client& client_;
  Fabric& fabric_;
  SourceLocation where_;
};

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
  if (!is_reached_by(client, *storage)) return through_host(read_whole(runtime, *storage, where));
  const Mover mover(runtime, client, where);
  StartedTransfer moving = make_array(value.type(), storage, value->where());
  const std::vector<MoveStep> steps =
      mover.route(static_cast<const DeviceArray&>(*storage), target);
  if (steps.size() == 1 && steps[0].way == MoveStep::Way::kReshard)
    return mover.rearranged(moving.value().value(), target);
  for (const MoveStep& step : steps) {
    Result<StartedTransfer> started = mover.start(step, moving.value().value());
    if (!started.ok() && started.error().code() == ErrorCode::kUnimplemented)
      return through_host(read_whole(runtime, *storage, where));
    if (!started.ok()) throw started.error().at(where);
    moving = *std::move(started);
  }
  return moving;
}

}  // namespace meshard
