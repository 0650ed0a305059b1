// The buffers that fill a device's memory at the peak of a compiled program.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/cost/memory_use.h"
#include "meshard/graph/graph.h"
#include "meshard/hlo/executions.h"

namespace meshard {

/// Value type: buffers in main memory, largest first.
struct LargestBuffers {
  std::vector<BufferUse> buffers;
  /// True if the compiler gave no buffer assignment. The buffers are then those that are live
  /// together in instruction order, without knowledge of which of them share memory.
  bool estimated = false;
};

/// The largest buffers, from the compiler's own buffer assignment. Includes arguments, outputs,
/// constants, and the temporaries that are live at the peak according to the heap trace; without a
/// trace, the largest temporary at each memory offset.
/// @param hlo_proto the bytes of an HloProto with module and buffer assignment
/// @param graph as in find_collectives
/// @param argument_names by argument number; arguments without a name use the module's names
/// @param most maximum number of returned buffers
/// @error data loss if the bytes are damaged; not found if they hold no buffer assignment
Result<LargestBuffers> largest_buffers(std::string_view hlo_proto, const Graph* graph,
                                       const std::vector<std::string>& argument_names = {},
                                       std::size_t most = 32);

/// Estimates the largest buffers from the module's execution order alone.
LargestBuffers estimated_buffers(const Executions& executions, const Graph* graph,
                                 const std::vector<std::string>& argument_names = {},
                                 std::size_t most = 32);

}  // namespace meshard
