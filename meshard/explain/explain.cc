#include "meshard/explain/explain.h"

#include "meshard/explain/collectives.h"
#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/hlo_module.h"
#include "meshard/runtime/lazy_evaluator.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {
namespace {

std::vector<ValuePlacement> placements(const std::vector<LoweredValue>& values,
                                       const std::vector<std::optional<Sharding>>& chosen) {
  std::vector<ValuePlacement> placed;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const LoweredValue& value = values[i];
    placed.push_back({.type = value.type,
                      .padded = value.padded,
                      .sharding = chosen[i],
                      .chosen_by_compiler = chosen[i].has_value() && !value.is_exact()});
  }
  return placed;
}

// None if the plugin does not count its memory.
Result<std::optional<MemoryUse>> memory_use(const pjrt::Executable& executable) {
  Result<pjrt::CompiledMemoryStats> stats = executable.memory_stats();
  if (!stats.ok()) {
    if (stats.error().code() == ErrorCode::kUnimplemented) return std::optional<MemoryUse>();
    return stats.error();
  }
  return std::optional(MemoryUse{.arguments = stats->arguments,
                                 .outputs = stats->outputs,
                                 .aliased = stats->aliases,
                                 .temporaries = stats->temporaries,
                                 .code = stats->generated_code,
                                 .peak = stats->peak});
}

Result<ProgramReport> report_of(const LoadedProgram& program, const Graph& graph) {
  const LoweredModule& lowered = program.lowered();
  const pjrt::Executable& executable = program.executable().executable();
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, executable.optimized_program());
  MESHARD_ASSIGN_OR_RETURN(pjrt::HloModule module, pjrt::HloModule::from_bytes(bytes));
  ProgramReport::Parts parts;
  parts.name = module.name;
  parts.mesh = lowered.mesh;
  parts.arguments = placements(lowered.arguments, program.shardings().arguments);
  parts.num_captured = graph.captured().size();
  parts.results = placements(lowered.results, program.shardings().results);
  MESHARD_ASSIGN_OR_RETURN(parts.collectives, find_collectives(module, lowered.mesh, &graph));
  MESHARD_ASSIGN_OR_RETURN(parts.memory, memory_use(executable));
  return ProgramReport(std::move(parts));
}

}  // namespace

ProgramReport explain(const CompiledProgram& program, SourceLocation where) {
  ProgramView view = view_of(program);
  Result<ProgramReport> report = report_of(view.program, view.graph);
  if (!report.ok()) throw report.error().at(where);
  return *std::move(report);
}

}  // namespace meshard
