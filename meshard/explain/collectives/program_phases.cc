#include "meshard/explain/collectives/program_phases.h"

#include "meshard/explain/collectives/origin.h"

namespace meshard {

ProgramPhase ProgramPhases::of_op(std::string_view op_name) const {
  if (!graph_) return phase_of_op(op_name);
  for (const std::string& name : names_in_op_name(op_name))
    if (ProgramPhase phase = graph_->of(node_path_in_op_name(name));
        phase != ProgramPhase::kUnknown)
      return phase;
  return ProgramPhase::kUnknown;
}

}  // namespace meshard
