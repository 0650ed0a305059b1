// Which part of a value each device holds. Computed from shardings alone.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

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

/// A value: the tiles of an array with a sharding, as boxes of the array, in row-major order.
class Tiling {
 public:
  /// @pre `shape` has at least the sharding's rank
  Tiling(Sharding sharding, const Shape& shape);

  const Sharding& sharding() const { return sharding_; }
  std::int64_t size() const { return sharding_.num_tiles(); }
  /// The part of the array in a tile, clamped to the array; the last ones may be empty.
  Box box(std::int64_t number) const;
  /// The shape of each tile, including padding.
  const Shape& shard_shape() const { return shard_; }
  /// The positions of the sharding's mesh that hold each tile, ascending.
  std::vector<std::vector<std::int64_t>> holders() const;

  // The tiles that have elements in common with a box of the array. Takes time in proportion to
  // these tiles, not to all.

  /// The number of them along each dimension; 0 in those in which the box is empty.
  IntVector count_in(const Box& box) const;
  /// Calls `visit` with the number of each, in row-major order. @pre the box is not empty
  template <class F>
  void for_each_in(const Box& box, F&& visit, std::size_t d = 0, std::int64_t number = 0) const {
    if (d == tiles_.size()) return visit(number);
    const DimensionSlice range = indices(box, d);
    for (std::int64_t i = range.start; i < range.stop; ++i)
      for_each_in(box, visit, d + 1, number * tiles_[d] + i);
  }

 private:
  DimensionSlice indices(const Box& box, std::size_t d) const;

  Sharding sharding_;
  Shape shape_, shard_;
  IntVector tiles_;  // along each dimension
};

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
