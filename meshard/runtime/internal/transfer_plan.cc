#include "meshard/runtime/internal/transfer_plan.h"

#include <algorithm>
#include <optional>

#include "meshard/array/box_overlap.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

// Whether a position of the source holds the tile with these indices.
bool holds(const Sharding& source, std::int64_t position, const IntVector& tile) {
  for (std::size_t d = 0; d < tile.size(); ++d)
    if (source.tile_index(d, position) != tile[d]) return false;
  return true;
}

// The number of the box among those that a position cuts.
std::size_t number_of(std::vector<Box>& boxes, const Box& box) {
  auto found = std::find(boxes.begin(), boxes.end(), box);
  if (found == boxes.end()) found = boxes.insert(boxes.end(), box);
  return static_cast<std::size_t>(found - boxes.begin());
}

}  // namespace

std::size_t TransferPlan::num_pieces() const {
  std::size_t count = 0;
  for (const Tile& tile : tiles) count += tile.pieces.size();
  return count;
}

TransferPlan plan_transfer(const Sharding& source, const Sharding& target, const Shape& shape,
                           std::span<const std::int64_t> positions) {
  const auto rank = static_cast<std::size_t>(shape.rank());
  const IntVector shard = source.shard_shape(shape);
  TransferPlan plan;
  plan.cuts.resize(static_cast<std::size_t>(source.mesh().size()));
  for (std::int64_t p : positions) {
    TransferPlan::Tile& made = plan.tiles.emplace_back();
    const Box box = box_of(target, shape, p);
    const std::optional<std::int64_t> there = source.mesh().position(target.mesh().device_id(p));
    IntVector first;  // the first tile of the source in each dimension
    std::int64_t count = 1;
    for (std::size_t d = 0; d < rank; ++d) {
      bool empty = box[d].size() == 0;
      first.push_back(empty ? 0 : box[d].start / shard[d]);
      made.grid.push_back(empty ? 0 : (box[d].stop - 1) / shard[d] + 1 - first[d]);
      count *= made.grid[d];
    }
    for (std::int64_t i = 0; i < count; ++i) {
      IntVector tile = first;
      std::int64_t rest = i;
      for (std::size_t d = rank; d-- > 0; rest /= made.grid[d]) tile[d] += rest % made.grid[d];
      const std::int64_t from = there && holds(source, *there, tile)
                                    ? *there
                                    : source.position_of(tile, p % source.num_replicas());
      const Box own = box_of(source, shape, from);
      std::vector<Box>& boxes = plan.cuts[static_cast<std::size_t>(from)];
      made.pieces.push_back({from, number_of(boxes, relative_to(own, *overlap(own, box)))});
    }
  }
  return plan;
}

Sharding nested_for(const Sharding& source, const Sharding& target) {
  std::vector<const MeshAxis*> unused;
  for (const MeshAxis& axis : source.mesh().axes()) unused.push_back(&axis);
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < target.rank(); ++d) {
    std::int64_t tiles = target.num_tiles(d);
    AxisList axes;
    std::erase_if(unused, [&](const MeshAxis* axis) {
      if (axis->size == 1 || tiles % axis->size != 0) return false;
      tiles /= axis->size;
      axes.push_back(AxisRef(axis->name));
      return true;
    });
    dimensions.emplace_back(std::move(axes));
  }
  return Sharding(source.mesh(), PartitionSpec(std::move(dimensions)));
}

}  // namespace meshard
