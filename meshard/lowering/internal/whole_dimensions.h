// Dimensions that the partitioner must not split.
#pragma once
#include <cstddef>
#include <optional>

#include "meshard/graph/node.h"
#include "meshard/mesh/mesh.h"
#include "meshard/quirks/quirks.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The sharding that an operand needs so that XLA's partitioner handles the op. XLA computes the op
/// wrongly, or fails, if some dimensions are split: these are closed and the others open. Empty if
/// no dimension is restricted.
/// @param quirks which ops are restricted: Quirk::kWholeConvolutions and the rows that follow it
std::optional<Sharding> whole_operand(const Node& node, std::size_t operand, const Mesh& mesh,
                                      QuirkSet quirks);
/// Closes the dimensions that either sharding closes.
/// @pre both are over one mesh, for one value, with closed dimensions that nothing splits
std::optional<Sharding> both_closed(const std::optional<Sharding>& a,
                                    const std::optional<Sharding>& b);
/// The same for the result.
std::optional<Sharding> whole_result(const Node& node, const Mesh& mesh, QuirkSet quirks);

}  // namespace meshard
