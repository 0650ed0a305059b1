// Which parts of a value go from which device to which when its sharding changes. Computed from
// shardings alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/array/slice.h"
#include "meshard/base/inline_vector.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: the pieces that the source's devices cut from their shards, and how the target's
/// devices assemble them. Each element of a target's tile is in one piece, so that each device
/// receives what it needs once, and nothing else.
struct TransferPlan {
  /// Box number `number` of those that source position `source` cuts.
  struct Piece {
    std::int64_t source = 0;
    std::size_t number = 0;
    friend bool operator==(const Piece&, const Piece&) = default;
  };
  /// The tile of one position of the target.
  struct Tile {
    /// The number of pieces along each dimension; a 0 if the tile has no elements.
    IntVector grid;
    /// In row-major order of the grid.
    std::vector<Piece> pieces;
  };

  /// For each position of the source, the different boxes that it cuts, relative to its shard.
  std::vector<std::vector<Box>> cuts;
  /// For each of the target's positions that were planned, in their order.
  std::vector<Tile> tiles;

  /// The number of pieces of all tiles.
  std::size_t num_pieces() const;
};

/// The plan for the tiles at these positions of the target, such as those of this process.
///
/// A target's device that has a part already takes it from itself. Otherwise the source's replicas
/// take turns, so that no device sends to all others.
/// @pre both shardings are of one platform, without unreduced axes, and have the rank of `shape`
TransferPlan plan_transfer(const Sharding& source, const Sharding& target, const Shape& shape,
                           std::span<const std::int64_t> positions);

/// A sharding over the source's devices from which each tile of `target` is cut from one shard, or
/// few if sizes are uneven: whole axes of the source's mesh split a dimension if they divide the
/// target's number of tiles.
/// @pre as for plan_transfer()
Sharding nested_for(const Sharding& source, const Sharding& target);

}  // namespace meshard
