#include "meshard/explain/explain.h"

#include "meshard/explain/report_of.h"
#include "meshard/pjrt/executable.h"
#include "meshard/runtime/device_topology.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {
namespace {

// A program compiled in this process, in the form returned by compile_for().
Result<Compiled> compiled_here(const pjrt::Executable& executable) {
  Compiled compiled;
  MESHARD_ASSIGN_OR_RETURN(compiled.optimized_program, executable.optimized_program());
  Result<pjrt::CompiledMemoryStats> stats = executable.memory_stats();
  if (stats.ok())
    compiled.memory = *stats;
  else if (stats.error().code() != ErrorCode::kUnimplemented)
    return stats.error();
  return compiled;
}

// The processes of a run; nothing if one process has all devices.
Result<void> describe_run(const pjrt::Client& client, const LinkOptions& links,
                          ProgramFacts& facts) {
  facts.links = links;
  if (links.processes)
    return Error(ErrorCode::kInvalidArgument,
                 "[explain] the processes of a program of this process are those of the run");
  MESHARD_ASSIGN_OR_RETURN(Topology topology, topology_of(client));
  ProcessMap processes = ProcessMap::of(topology);
  if (processes.count() > 1) {
    facts.processes = std::move(processes);
    facts.topology = std::move(topology);
  } else if (links.between_processes) {
    return Error(ErrorCode::kInvalidArgument,
                 "[explain] a link between processes is given, but this run has one process");
  }
  return {};
}

Result<ProgramReport> report_of_loaded(const ProgramView& view, const LinkOptions& links) {
  Compiled compiled;
  MESHARD_RETURN_IF_ERROR(
      view.program.look_at_whole([&](const pjrt::LoadedExecutable& whole) -> Result<void> {
        MESHARD_ASSIGN_OR_RETURN(compiled, compiled_here(whole.executable()));
        return {};
      }));
  ProgramFacts facts;
  facts.program = view.program.lowered();
  describe_graph(view.graph, view.parameter_names, view.donated, facts);
  const pjrt::Client& client = view.program.client();
  MESHARD_RETURN_IF_ERROR(describe_run(client, links, facts));
  facts.hardware.name = client.platform();
  facts.hardware.devices = facts.program.num_partitions();
  if (!client.addressable_devices().empty()) {
    MESHARD_ASSIGN_OR_RETURN(facts.hardware.device_kind,
                             client.addressable_devices()[0]->description().kind());
  }
  return report_of(compiled, facts, &view.program.shardings());
}

}  // namespace

ProgramReport explain(const CompiledProgram& program, SourceLocation where) {
  return explain(program, LinkOptions{}, where);
}

ProgramReport explain(const CompiledProgram& program, const LinkOptions& links,
                      SourceLocation where) {
  ProgramView view = view_of(program);
  Result<ProgramReport> report = report_of_loaded(view, links);
  if (!report.ok()) throw report.error().at(where);
  return *std::move(report);
}

}  // namespace meshard
