// The phases of a training step that the ops of a program belong to.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/explain/collectives/op_scope.h"
#include "meshard/graph/graph.h"

namespace meshard {

/// Tells the phase of an op by its name in a compiled module.
///
/// With a graph, the derivatives that the program took tell: ops that were recorded by a derivative
/// are the backward pass; what depends on their results is the optimizer; what they are computed
/// from, and what else follows from that, is the forward pass. Ops that have nothing to do with a
/// derivative are in no phase. An op in a body of another op has that op's phase, unless the body
/// takes derivatives itself.
///
/// Without a graph, the names tell (phase_of_op).
class ProgramPhases {
 public:
  /// For modules of JAX.
  ProgramPhases() = default;
  explicit ProgramPhases(const Graph& graph);

  ProgramPhase of_op(std::string_view op_name) const;

 private:
  // Of a node, by its path as Graph::find takes it.
  ProgramPhase of_node(std::string_view path) const;

  bool has_graph_ = false;
  Graph graph_;
  bool takes_derivatives_ = false;
  std::vector<ProgramPhase> phases_;  // by position in graph_.nodes()
  // Of the bodies that take derivatives, by the path of the body, `7.0`.
  std::map<std::string, ProgramPhases, std::less<>> bodies_;
};

}  // namespace meshard
