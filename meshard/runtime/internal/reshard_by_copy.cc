#include "meshard/runtime/internal/reshard_by_copy.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/array/box_overlap.h"
#include "meshard/array/slice.h"
#include "meshard/base/stall_report.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/copy_pool.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/internal/wait_at_exit.h"
#include "meshard/runtime/tiles.h"
#include "meshard/sharding/open_dimensions.h"

namespace meshard {
namespace {

// With more pieces, each is so small that planning its copy takes longer than a program.
constexpr std::int64_t kMostPieces = 1 << 16;

Error needs_program() {
  return Error(ErrorCode::kUnimplemented, "[reshard] a program must reshard this value");
}

// The first position of each tile, by tile number.
std::unordered_map<std::int64_t, std::int64_t> first_positions(const Sharding& sharding) {
  std::unordered_map<std::int64_t, std::int64_t> first;
  for (std::int64_t p = 0; p < sharding.mesh().size(); ++p)
    first.try_emplace(tile_number(sharding, p), p);
  return first;
}

// The tiles of a sharding that have elements in common with boxes of the value. Takes time in
// proportion to these tiles, not to all.
class TileGrid {
 public:
  TileGrid(const Sharding& sharding, const TensorType& type)
      : shard_(shard_type_of(type, sharding).shape) {
    for (std::int64_t d = 0; d < type.rank(); ++d)
      tiles_.push_back(sharding.num_tiles(static_cast<std::size_t>(d)));
  }
  const Shape& shard_shape() const { return shard_; }
  /// The number of tiles that the box meets. @pre the box is not empty
  std::int64_t count(const Box& box) const {
    std::int64_t count = 1;
    for (std::size_t d = 0; d < tiles_.size(); ++d) count *= indices(box, d).size();
    return count;
  }
  /// Calls `visit` with the number of each of these tiles.
  template <class F>
  void for_each(const Box& box, F&& visit, std::size_t d = 0, std::int64_t number = 0) const {
    if (d == tiles_.size()) return visit(number);
    DimensionSlice range = indices(box, d);
    for (std::int64_t i = range.start; i < range.stop; ++i)
      for_each(box, visit, d + 1, number * tiles_[d] + i);
  }

 private:
  DimensionSlice indices(const Box& box, std::size_t d) const {
    std::int64_t size = shard_[static_cast<std::int64_t>(d)];
    return {box[d].start / size, (box[d].stop - 1) / size + 1};
  }
  Shape shard_;
  IntVector tiles_;
};

// The bytes of one tile of the source.
struct SourceTile {
  Box box;
  pjrt::HostView bytes;
};

Result<std::unordered_map<std::int64_t, SourceTile>> source_tiles(const DeviceArray& source) {
  const Sharding& sharding = *source.sharding();
  std::unordered_map<std::int64_t, SourceTile> tiles;
  for (const auto& [tile, position] : first_positions(sharding)) {
    MESHARD_ASSIGN_OR_RETURN(pjrt::HostView bytes,
                             source.buffers()[static_cast<std::size_t>(position)].host_view());
    tiles.emplace(tile,
                  SourceTile{box_of(sharding, source.type().shape, position), std::move(bytes)});
  }
  return tiles;
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
  if (!present || !present->unreduced_axes().empty() || !is_plain(target) ||
      !source.has_all_shards())
    return needs_program();
  const std::unordered_map<std::int64_t, std::int64_t> targets = first_positions(target);
  const TileGrid grid(*present, type);
  std::int64_t pieces = 0;
  for (const auto& [tile, position] : targets)
    if (Box box = box_of(target, type.shape, position); box_shape(box).size() > 0)
      pieces += grid.count(box);
  if (pieces > kMostPieces) return needs_program();
  internal::WaitPlace place(where);
  internal::HostSpan span;
  if (internal::records_events()) span.begin("reshard", type.to_string(), where);
  span.set_bytes(static_cast<std::uint64_t>(type.bytes()));
  const pjrt::Client& client = platforms.client(target.mesh(), where);
  MESHARD_ASSIGN_OR_RETURN(auto tiles, source_tiles(source));
  const TensorType shard_type = shard_type_of(type, target);
  std::unordered_map<std::int64_t, HostArray> blocks;
  std::vector<StridedCopy> copies;
  for (const auto& [tile, position] : targets) {
    Box box = box_of(target, type.shape, position);
    bool padded = box_shape(box) != shard_type.shape;
    HostArray block = padded ? HostArray::zeros(shard_type) : HostArray::uninitialized(shard_type);
    if (box_shape(box).size() > 0)
      grid.for_each(box, [&](std::int64_t number) {
        const SourceTile& from = tiles.at(number);
        Box both = *overlap(from.box, box);
        copies.push_back(plan_copy(from.bytes.bytes().data(), grid.shard_shape(),
                                   relative_to(from.box, both), block.mutable_bytes(),
                                   shard_type.shape, relative_to(box, both),
                                   meshard::size_in_bytes(type.dtype)));
      });
    blocks.emplace(tile, std::move(block));
  }
  CopyPool::get().run(copies);
  std::vector<pjrt::Buffer> buffers;
  bool alone = target.num_replicas() == 1;
  for (std::int64_t p = 0; p < target.mesh().size(); ++p) {
    const HostArray& block = blocks.at(tile_number(target, p));
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
