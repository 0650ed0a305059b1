// What fills a device's memory when a compiled program needs the most of it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/memory_use.h"
#include "meshard/graph/graph.h"
#include "meshard/hlo/executions.h"

namespace meshard {

/// A value: buffers in main memory, the largest first.
struct LargestBuffers {
  std::vector<BufferUse> buffers;
  /// True if the compiler told nothing and the buffers are those that are alive together by the
  /// order of the instructions: what the compiler lets share memory is not known then.
  bool estimated = false;
};

/// From the compiler's own assignment: arguments, outputs, constants, and of the temporaries those
/// that are alive when most is, by its heap trace; without a trace the largest of each place in
/// memory.
/// @param hlo_proto the bytes of an HloProto with module and buffer assignment
/// @param graph as in find_collectives
/// @param argument_names by the arguments' numbers; where there is none, the module's own
/// @param most how many are told
/// @error data loss if the bytes are damaged; not found if they hold no buffer assignment
Result<LargestBuffers> largest_buffers(std::string_view hlo_proto, const Graph* graph,
                                       const std::vector<std::string>& argument_names = {},
                                       std::size_t most = 32);

/// An estimate from a module alone, by the order in which it runs.
LargestBuffers estimated_buffers(const Executions& executions, const Graph* graph,
                                 const std::vector<std::string>& argument_names = {},
                                 std::size_t most = 32);

}  // namespace meshard
