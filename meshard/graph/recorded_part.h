// What a thread has recorded and must still be computed.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "meshard/graph/node.h"
#include "meshard/graph/record_log.h"

namespace meshard {

/// A part of what a thread has recorded.
struct RecordedPart {
  /// The nodes that are not computed, but needed for a value to which something outside of the
  /// recorded nodes refers, in the order of recording, with their numbers in the log.
  std::vector<std::pair<std::uint64_t, Value>> nodes;
  /// The members of `nodes` to which something outside of them refers: a handle, or a node that was
  /// recorded later.
  std::vector<Value> wanted;
};

/// The nodes with the numbers `first` to `last` - 1 in the log of this thread. Values that cannot
/// be computed outside of their function and values without elements are left out, with all that
/// depends on them. Local values inside manual axes are not wanted.
/// @pre no other thread changes the operands of recorded nodes
RecordedPart recorded_part(const internal::RecordLog& log, std::uint64_t first, std::uint64_t last);

}  // namespace meshard
