// Dimensions that the partitioner must not split.
#pragma once
#include <cstddef>
#include <optional>

#include "meshard/graph/node.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// What an operand of `node` needs because XLA's partitioner computes the op wrongly, or fails,
/// where some of its dimensions are split: these closed and the others open; nothing if it needs
/// nothing.
std::optional<Sharding> whole_operand(const Node& node, std::size_t operand, const Mesh& mesh);
/// The same for the result.
std::optional<Sharding> whole_result(const Node& node, const Mesh& mesh);

}  // namespace meshard
