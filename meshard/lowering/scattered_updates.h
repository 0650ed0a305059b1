// Scatters whose updates could be split unevenly.
#pragma once
#include <optional>

#include "meshard/graph/node.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// How an operand of a scatter must lie before the scatter, for the result to be right: empty for
/// all other operands and ops.
///
/// XLA's partitioner pads updates that are split unevenly along the dimensions of the indices, and
/// adds what stands in the padding to the first element. Such a dimension is closed unless the
/// number of devices divides its size: then every choice of axes does.
/// @param mesh the program's
std::optional<Sharding> even_for_scatter(const Node& node, std::size_t operand, const Mesh& mesh);

}  // namespace meshard
