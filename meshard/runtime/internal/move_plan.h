// How a value moves from one sharding to another. Computed from shardings alone, and alike in all
// processes; device_to_device.h carries it out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "meshard/array/slice.h"
#include "meshard/runtime/tiles.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A part of a value, and the place that needs it. Places are numbered by the caller: devices,
/// processes, or one for the memory of this host.
struct MoveTarget {
  int place = 0;
  Box box;
};

/// The piece that one place sends to a target.
struct Move {
  /// The position of the source's mesh whose tile has the piece.
  std::int64_t from = 0;
  /// The number of the target.
  std::size_t to = 0;
  /// Of the value.
  Box piece;
  /// Whether the target's place has the piece already: nothing is sent.
  bool stays = false;
  friend bool operator==(const Move&, const Move&) = default;
};

/// The moves that give each target its elements, each once, in the order of the targets and then of
/// the source's tiles. A place that has a piece takes it from itself. Otherwise the holder of the
/// piece gives it whose place sends the fewest elements so far; of several, the first one after the
/// target's place, so that replicas share the work.
/// @param places the place of each position of the source's mesh
/// @pre the source has no unreduced axes
std::vector<Move> plan_moves(const Tiling& source, std::span<const int> places,
                             std::span<const MoveTarget> targets);

/// A step on the way of a value to another sharding.
struct MoveStep {
  enum class Way : std::uint8_t {
    /// On its devices, which exchange the missing parts.
    kReshard,
    /// To other devices that this process reaches: views, copies, and pieces that are assembled.
    kCarry,
    /// To devices of other processes, which receive the missing parts.
    kReceive,
    /// To devices of other processes, each of which reads the whole value.
    kReadAndPlace,
  };
  Way way = Way::kReshard;
  Sharding to;
  friend bool operator==(const MoveStep&, const MoveStep&) = default;
};

/// The inputs of plan_route() in addition to the shardings.
struct RouteOptions {
  /// False for a value that is on the source's device without a sharding; no program reshards it
  /// there. Default: true.
  bool is_sharded = true;
  /// How values go between processes.
  enum class Exchange : std::uint8_t {
    /// Not at all: all devices are of this process.
    kNone,
    /// In pieces, to any devices.
    kPieces,
    /// Each process reads the whole value, and sends its devices their parts.
    kWhole,
  };
  Exchange exchange = Exchange::kNone;
};

/// The steps from `source` to `target`, the last of which leads to `target`: at most a reshard on
/// the source's devices, then one step between devices, then a reshard on the target's devices. It
/// carries no partial sums; cuts tiles out of larger ones that are in place; and first reshards on
/// the source's devices if a tile would consist of more than `kMostPiecesOfTile` pieces.
std::vector<MoveStep> plan_route(const Sharding& source, const Sharding& target, const Shape& shape,
                                 RouteOptions options = {});
inline constexpr std::int64_t kMostPiecesOfTile = 8;

/// The largest number of pieces that a tile of `target` consists of, or more.
std::int64_t pieces_of_tile(const Sharding& source, const Sharding& target, const Shape& shape);

}  // namespace meshard
