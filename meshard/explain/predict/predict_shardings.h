// Predicts the shardings of all values of a program, before it is compiled.
#pragma once
#include <optional>
#include <vector>

#include "meshard/explain/predict/ruled_program.h"
#include "meshard/graph/graph.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Shardings by node number in the graph, then by result. None: the value is inside manual axes, or
/// on another mesh than the requested one.
using ShardingsOfValues = std::vector<std::vector<std::optional<Sharding>>>;

/// The shardings of all values: propagate_program() from those of leaves and marks.
ShardingsOfValues predict_shardings(const Graph& graph, const Mesh& mesh);

/// Value type: a graph as prediction sees it. Nodes without a sharding rule are left out.
struct GraphProgram {
  RuledProgram rules;
  /// The number of the first value of each node, by the node's number in the graph.
  std::vector<std::size_t> first;

  std::size_t number(const Graph& graph, const Value& value) const {
    return first[graph.number(value.node())] + value.index();
  }
};
GraphProgram program_of_graph(const Graph& graph);

/// The shardings that leaves and marks give, by value; all other values are open. Those inside
/// manual axes, or over another mesh, are not known.
std::vector<PartialSharding> starting_shardings(const Graph& graph, const Mesh& mesh,
                                                const GraphProgram& program);

}  // namespace meshard
