// Which part of a value each device holds. Computed from shardings alone.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/array/shape.h"
#include "meshard/array/slice.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// True if both are absent, or both are equal.
inline bool same_sharding(const Sharding* a, const std::optional<Sharding>& b) {
  return a ? b && *a == *b : !b;
}

/// The part of a value of `shape` that a position holds, clamped to the value; the last ones may be
/// empty.
Box box_of(const Sharding& sharding, const Shape& shape, std::int64_t position);

/// The type of one shard of a value, including padding.
TensorType shard_type_of(const TensorType& type, const Sharding& sharding);

/// The number of a position's tile, in row-major order over the dimensions' num_tiles.
std::int64_t tile_number(const Sharding& sharding, std::int64_t position);

/// True if each shard of `target` is exactly a shard of a value with the sharding `source`
/// (nullptr: the whole value on one device).
bool has_same_tiles(const Sharding* source, const Sharding& target);

/// True if each device of `target` already holds the tile that `target` assigns to it.
bool has_tiles_in_place(const Sharding& source, const Sharding& target);

/// The sharding of a value on the devices of `target` only. It exists if each of them holds a tile
/// that contains the one `target` assigns to it. It uses the first axes of each dimension of
/// `target`. Empty: some device lacks its part.
std::optional<Sharding> part_in_place(const Sharding& source, const Sharding& target);

/// True if every device of `mesh` holds the whole value.
bool is_whole_on(const Sharding& source, const Mesh& mesh);

}  // namespace meshard
