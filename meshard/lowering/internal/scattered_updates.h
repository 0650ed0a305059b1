// Scatters whose updates could be split unevenly.
#pragma once
#include <optional>

#include "meshard/graph/node.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The sharding that an operand of a scatter needs for a correct result (Quirk::kUnevenScatters).
/// Empty for all other operands and ops. A dimension of the indices is closed unless its size is
/// divisible by the number of devices; then any choice of axes divides it.
/// @param mesh the mesh of the program
std::optional<Sharding> even_for_scatter(const Node& node, std::size_t operand, const Mesh& mesh);

}  // namespace meshard
