#include "meshard/runtime/tiles.h"

#include <algorithm>

#include "meshard/mesh/device_type.h"

namespace meshard {

Box box_of(const Sharding& sharding, const Shape& shape, std::int64_t position) {
  Box box;
  for (const DimensionSlice& slice : sharding.slice(shape, position))
    box.push_back({slice.start, slice.stop});
  return box;
}

TensorType shard_type_of(const TensorType& type, const Sharding& sharding) {
  Dimensions sizes;
  for (std::int64_t size : sharding.shard_shape(type.shape)) sizes.push_back(size);
  return {type.dtype, Shape(std::move(sizes))};
}

std::int64_t tile_number(const Sharding& sharding, std::int64_t position) {
  std::int64_t number = 0;
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    number = number * sharding.num_tiles(d) + sharding.tile_index(d, position);
  return number;
}

Tiling::Tiling(Sharding sharding, const Shape& shape)
    : sharding_(std::move(sharding)),
      shape_(shape),
      shard_(shard_type_of({DType::u8, shape}, sharding_).shape) {
  for (std::size_t d = 0; d < static_cast<std::size_t>(shape.rank()); ++d)
    tiles_.push_back(sharding_.num_tiles(d));
}

Box Tiling::box(std::int64_t number) const {
  Box box;
  box.resize(tiles_.size());
  for (std::size_t d = tiles_.size(); d-- > 0; number /= tiles_[d]) {
    const std::int64_t size = shape_[static_cast<std::int64_t>(d)];
    const std::int64_t shard = shard_[static_cast<std::int64_t>(d)];
    const std::int64_t start = std::min(size, number % tiles_[d] * shard);
    box[d] = {start, std::min(size, start + shard)};
  }
  return box;
}

std::vector<std::vector<std::int64_t>> Tiling::holders() const {
  std::vector<std::vector<std::int64_t>> holders(static_cast<std::size_t>(size()));
  for (std::int64_t p = 0; p < sharding_.mesh().size(); ++p)
    holders[static_cast<std::size_t>(tile_number(sharding_, p))].push_back(p);
  return holders;
}

DimensionSlice Tiling::indices(const Box& box, std::size_t d) const {
  if (box[d].size() == 0) return {};
  const std::int64_t shard = shard_[static_cast<std::int64_t>(d)];
  return {box[d].start / shard, (box[d].stop - 1) / shard + 1};
}

IntVector Tiling::count_in(const Box& box) const {
  IntVector counts;
  for (std::size_t d = 0; d < tiles_.size(); ++d) counts.push_back(indices(box, d).size());
  return counts;
}

bool has_same_tiles(const Sharding* source, const Sharding& target) {
  if (!source) return target.is_fully_replicated();
  if (!source->unreduced_axes().empty() || !target.unreduced_axes().empty()) return false;
  for (std::size_t d = 0; d < std::max(source->rank(), target.rank()); ++d)
    if (source->num_tiles(d) != target.num_tiles(d)) return false;
  return true;
}

bool has_tiles_in_place(const Sharding& source, const Sharding& target) {
  if (!same_platform(source.mesh(), target.mesh()) || !has_same_tiles(&source, target))
    return false;
  std::size_t rank = std::min(source.rank(), target.rank());
  for (std::int64_t p = 0; p < target.mesh().size(); ++p) {
    std::optional<std::int64_t> at = source.mesh().position(target.mesh().device_id(p));
    if (!at) return false;
    for (std::size_t d = 0; d < rank; ++d)
      if (source.tile_index(d, *at) != target.tile_index(d, p)) return false;
  }
  return true;
}

std::optional<Sharding> part_in_place(const Sharding& source, const Sharding& target) {
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < target.rank(); ++d) {
    std::int64_t tiles = d < source.rank() ? source.num_tiles(d) : 1;
    AxisList axes;
    for (const AxisRef& axis : target.axes(d)) {
      if (tiles == 1) break;
      std::int64_t size = target.mesh().axis_size(axis);
      if (tiles % size == 0) {
        axes.push_back(axis);
        tiles /= size;
      } else if (size % tiles == 0) {
        axes.push_back(AxisRef(axis.name, axis.is_whole() ? 1 : axis.pre_size, tiles));
        tiles = 1;
      } else {
        return std::nullopt;
      }
    }
    if (tiles != 1) return std::nullopt;
    dimensions.emplace_back(std::move(axes));
  }
  Sharding part(target.mesh(), PartitionSpec(std::move(dimensions)), target.rank());
  return has_tiles_in_place(source, part) ? std::optional(std::move(part)) : std::nullopt;
}

bool is_whole_on(const Sharding& source, const Mesh& mesh) {
  if (!source.is_fully_replicated() || !source.unreduced_axes().empty()) return false;
  if (!same_platform(source.mesh(), mesh)) return false;
  for (std::int64_t id : mesh.device_ids())
    if (!source.mesh().position(id)) return false;
  return true;
}

}  // namespace meshard
