// Tested in meshard/runtime/internal/device_to_device_test.cc.
#include "meshard/runtime/internal/reshard.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/array/slice.h"
#include "meshard/base/stall_report.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/identity.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/copy_pool.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/internal/move_plan.h"
#include "meshard/runtime/internal/wait_at_exit.h"
#include "meshard/runtime/tiles.h"
#include "meshard/sharding/open_dimensions.h"

namespace meshard {
namespace {

// The same sharding with all dimensions closed.
Sharding closed(const Sharding& sharding) {
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < sharding.rank(); ++d) dimensions.emplace_back(sharding.axes(d));
  return Sharding(sharding.mesh(), PartitionSpec(std::move(dimensions)))
      .with_unreduced_of(sharding);
}

}  // namespace

Tensor reshard(Runtime& runtime, const Value& value, const Sharding& target, SourceLocation where) {
  const auto* array = static_cast<const DeviceArray*>(value.storage());
  Program program;
  program.name = "reshard";
  {
    internal::TraceScope scope;
    Tensor given = make_parameter(value.type(), closed(*array->sharding()), where);
    Tensor result = sharding_constraint(In(given, where), closed(target));
    program.graph =
        Graph::build(std::span(&given.value(), 1), std::span(&result.value(), 1), scope.trace());
  }
  std::shared_ptr<const LoadedProgram> loaded = runtime.programs.get(program, where);
  const std::optional<Sharding>& read = loaded->shardings().arguments[0];
  internal_check(loaded->accepts(0, *array) ||
                     (read && array->sharding()->is_equivalent_to(
                                  *read, static_cast<std::size_t>(value.type().rank()))),
                 "[runtime] the value is not where the program reads it");
  Tensor result;
  Result<pjrt::Launch> launched =
      loaded->launch(std::span(&array, 1), std::span(&result, 1), where);
  if (!launched.ok()) throw launched.error().at(where);
  return result;
}

namespace {

// With more pieces, each is so small that planning its copy takes longer than a program.
constexpr std::int64_t kMostPieces = 1 << 16;

Error needs_program() {
  return Error(ErrorCode::kUnimplemented, "[reshard] a program must reshard this value");
}

// The bytes of the shards that these moves read, by position.
Result<std::unordered_map<std::int64_t, pjrt::HostView>> views_of(const DeviceArray& source,
                                                                  std::span<const Move> moves) {
  std::unordered_map<std::int64_t, pjrt::HostView> views;
  for (const Move& move : moves) {
    if (views.contains(move.from)) continue;
    MESHARD_ASSIGN_OR_RETURN(pjrt::HostView view,
                             source.buffers()[static_cast<std::size_t>(move.from)].host_view());
    views.emplace(move.from, std::move(view));
  }
  return views;
}

}  // namespace

bool is_plain(const Sharding& sharding) {
  return !has_open_dimensions(sharding) && sharding.unreduced_axes().empty() &&
         sharding.replicated_axes().empty();
}

Result<StoragePtr> reshard_by_copy(Platforms& platforms, const DeviceArray& source,
                                   const Sharding& target, SourceLocation where) {
  const TensorType& type = source.type();
  const Sharding* present = source.sharding();
  if (!present || !present->unreduced_axes().empty() || !is_plain(target)) return needs_program();
  const Tiling from(*present, type.shape), to(target, type.shape);
  std::vector<MoveTarget> tiles;  // of the target, all in the memory of the host
  std::int64_t pieces = 0;
  for (std::int64_t tile = 0; tile < to.size(); ++tile) {
    tiles.push_back({0, to.box(tile)});
    std::int64_t count = 1;
    for (std::int64_t along : from.count_in(tiles.back().box)) count *= along;
    pieces += count;
  }
  if (pieces > kMostPieces) return needs_program();
  internal::WaitPlace place(where);
  internal::HostSpan span;
  if (internal::records_events()) span.begin("reshard", type.to_string(), where);
  span.set_bytes(static_cast<std::uint64_t>(type.bytes()));
  const pjrt::Client& client = platforms.client(target.mesh(), where);
  const std::vector<int> one_place(static_cast<std::size_t>(present->mesh().size()), 0);
  const std::vector<Move> moves = plan_moves(from, one_place, tiles);
  MESHARD_ASSIGN_OR_RETURN(auto shards, views_of(source, moves));
  const TensorType shard_type = shard_type_of(type, target);
  std::vector<HostArray> blocks;
  for (const MoveTarget& tile : tiles)
    blocks.push_back(box_shape(tile.box) == shard_type.shape ? HostArray::uninitialized(shard_type)
                                                             : HostArray::zeros(shard_type));
  std::vector<StridedCopy> copies;
  for (const Move& move : moves)
    copies.push_back(
        plan_copy(shards.at(move.from).bytes().data(), from.shard_shape(),
                  relative_to(source.box(static_cast<std::size_t>(move.from)), move.piece),
                  blocks[move.to].mutable_bytes(), shard_type.shape,
                  relative_to(tiles[move.to].box, move.piece), meshard::size_in_bytes(type.dtype)));
  CopyPool::get().run(copies);
  std::vector<pjrt::Buffer> buffers;
  bool alone = target.num_replicas() == 1;
  for (std::int64_t p = 0; p < target.mesh().size(); ++p) {
    const HostArray& block = blocks[static_cast<std::size_t>(tile_number(target, p))];
    buffers.push_back(internal::give_to_device(client, block, block.bytes(), shard_type, alone,
                                               device_of(client, target.mesh().device_id(p), where),
                                               where));
    internal::count(internal::counters().buffers_moved);
    internal::count(internal::counters().bytes_moved,
                    static_cast<std::uint64_t>(shard_type.bytes()));
  }
  return StoragePtr(make_storage<DeviceArray>(platforms, type, target, std::move(buffers)));
}

}  // namespace meshard
