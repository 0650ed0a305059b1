// The phases of a training step that the nodes of a graph belong to.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/graph/graph.h"

namespace meshard {

/// The part of a training step that an op belongs to.
enum class ProgramPhase {
  kUnknown,
  kForward,
  kBackward,   ///< gradients, and what is computed again for them
  kOptimizer,  ///< the update of the parameters
};

/// Whether it is a pass of the model: forward or backward.
inline bool is_of_model(ProgramPhase phase) {
  return phase == ProgramPhase::kForward || phase == ProgramPhase::kBackward;
}

/// Classifies nodes as forward, backward or optimizer: nodes that were recorded by a derivative
/// are the backward pass; nodes that depend on their results are the optimizer; nodes that they
/// depend on, and other nodes that depend on those, are the forward pass. Nodes that have nothing
/// to do with a derivative are in no phase. A node in a body of another node has that node's phase,
/// unless the body takes derivatives itself.
class GraphPhases {
 public:
  explicit GraphPhases(const Graph& graph);

  /// @param path of a node, as Graph::find takes it
  ProgramPhase of(std::string_view path) const;

 private:
  Graph graph_;
  bool takes_derivatives_ = false;
  std::vector<ProgramPhase> phases_;  // by position in graph_.nodes()
  // The phases inside bodies that take derivatives, by the path of the body, `7.0`.
  std::map<std::string, GraphPhases, std::less<>> bodies_;
};

}  // namespace meshard
