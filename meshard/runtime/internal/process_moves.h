// Which process sends which part of a value to which other process. Computed in all of them alike.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "meshard/array/slice.h"

namespace meshard {

/// One tile of a value: the processes that hold it, and at which position of the value's mesh.
struct HeldTile {
  Box box;
  std::vector<std::pair<int, std::int64_t>> holders;
};

/// A part of a value that a process wants.
struct PartOfProcess {
  int process = 0;
  Box box;
};

/// What one process copies or sends for one part.
struct ProcessMove {
  int from = 0;
  /// Whose tile it is in, in process `from`.
  std::int64_t position = 0;
  std::size_t tile = 0, part = 0;
  /// Of the value.
  Box piece;
  friend bool operator==(const ProcessMove&, const ProcessMove&) = default;
};

/// The moves for these parts, in the order of the parts and their pieces. A process that has a
/// piece takes it from itself. Otherwise the holder sends it that sends the fewest elements so far;
/// of several, the first one after the receiver's number, so that replicas share the work.
/// @pre each tile has a holder
std::vector<ProcessMove> plan_moves(std::span<const HeldTile> tiles,
                                    std::span<const PartOfProcess> parts);

}  // namespace meshard
