// Predicts the shardings of all values of a program, before it is compiled.
#pragma once
#include <optional>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard {

/// Shardings by node number in the graph, then by result. None: the value is inside manual axes, or
/// on another mesh than the requested one.
using ShardingsOfValues = std::vector<std::vector<std::optional<Sharding>>>;

/// Propagates the shardings of leaves and marks along the ops' sharding rules. It runs forward and
/// backward until nothing changes: first through pass-through ops, then through all (after Shardy's
/// op-priority propagation; openxla/shardy,
/// shardy/dialect/sdy/transforms/propagation/op_priority_propagation.h). A dimension receives
/// further axes if it is open and no other dimension of the value uses them; where tensors disagree
/// about a factor, only the common prefix is propagated. Explicit shardings stay unchanged.
///
/// This is a prediction: the compiler's own propagation has more rules for conflicts.
ShardingsOfValues predict_shardings(const Graph& graph, const Mesh& mesh);

/// Converts the axes of a tensor's dimensions to axes of its factors. A dimension whose axes do not
/// align with its factors counts as whole, and is added to `unfit` if that is not null.
std::vector<AxisList> factor_axes(const Mesh& mesh, const ShardingRule& rule,
                                  const TensorFactors& tensor,
                                  const std::vector<AxisList>& dimensions,
                                  std::vector<std::size_t>* unfit = nullptr);

/// Converts axes of factors to axes of a tensor's dimensions. A factor after one that is not fully
/// split into single elements cannot be sharded: its axes are dropped, and it is added to `strided`
/// if that is not null.
std::vector<AxisList> dimension_axes(const Mesh& mesh, const ShardingRule& rule,
                                     const TensorFactors& tensor,
                                     const std::vector<AxisList>& by_factor,
                                     std::vector<int>* strided = nullptr);

/// A closed sharding with these axes.
Sharding sharding_of(const Mesh& mesh, const std::vector<AxisList>& dimensions);

}  // namespace meshard
