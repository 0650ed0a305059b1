// The shardings of all values of a program, before it is compiled.
#pragma once
#include <optional>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard {

/// By the node's number in its graph, by result. None: the value is inside manual axes, or lies
/// over another mesh than the one that is asked about.
using ShardingsOfValues = std::vector<std::vector<std::optional<Sharding>>>;

/// Spreads the shardings of leaves and marks along the ops' sharding rules, forwards and backwards,
/// until nothing changes: first through ops that only pass dimensions on, then through all (after
/// Shardy's op-priority propagation; openxla/shardy,
/// shardy/dialect/sdy/transforms/propagation/op_priority_propagation.h). A dimension takes further
/// axes if it is open and no other dimension of the value uses them; where tensors disagree about a
/// factor, nobody takes more than what they have in common. Explicit shardings stand as they are.
///
/// This is a prediction: the compiler's own propagation breaks ties in more ways.
ShardingsOfValues predict_shardings(const Graph& graph, const Mesh& mesh);

/// The factors' axes of a tensor, by factor. A dimension whose axes do not fall on its factors
/// counts as whole, and is entered in `unfit` if that is not null.
std::vector<AxisList> factor_axes(const Mesh& mesh, const ShardingRule& rule,
                                  const TensorFactors& tensor,
                                  const std::vector<AxisList>& dimensions,
                                  std::vector<std::size_t>* unfit = nullptr);

/// The axes of a tensor's dimensions whose factors are split so. A factor inside one that is not
/// split into single elements cannot be split: its axes are left out, and it is entered in
/// `strided` if that is not null.
std::vector<AxisList> dimension_axes(const Mesh& mesh, const ShardingRule& rule,
                                     const TensorFactors& tensor,
                                     const std::vector<AxisList>& by_factor,
                                     std::vector<int>* strided = nullptr);

/// A closed sharding of these axes.
Sharding sharding_of(const Mesh& mesh, const std::vector<AxisList>& dimensions);

}  // namespace meshard
