// The phases of a training step that the ops of a compiled module belong to.
#pragma once
#include <optional>
#include <string_view>

#include "meshard/explain/collectives/op_scope.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/program_phases.h"

namespace meshard {

/// Tells the phase of an op by its name in a compiled module: with a graph, that of the node it
/// names; without one, what the name says (phase_of_op).
class ProgramPhases {
 public:
  /// For modules of JAX, and files of modules that meshard lowered.
  ProgramPhases() = default;
  explicit ProgramPhases(const Graph& graph) : graph_(graph) {}

  ProgramPhase of_op(std::string_view op_name) const;

 private:
  std::optional<GraphPhases> graph_;
};

}  // namespace meshard
