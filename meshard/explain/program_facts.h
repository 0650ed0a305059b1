// Facts about a program that do not come from its compiler.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/cost/custom_call_use.h"
#include "meshard/explain/measured/measured_run.h"
#include "meshard/explain/module_layout.h"
#include "meshard/explain/process_map.h"
#include "meshard/explain/report.h"
#include "meshard/graph/graph.h"
#include "meshard/lowering/lower.h"
#include "meshard/stablehlo/module_reader.h"
#include "meshard/target/compile_for.h"
#include "meshard/target/target.h"

namespace meshard {

/// Value type: a program as it was given to the compiler.
struct ProgramFacts {
  /// Meshes, arguments and results, with the requested shardings. The text may be empty.
  LoweredModule program;
  /// Names in the program; one for each argument and result, empty if unnamed.
  std::vector<std::string> argument_names, result_names;
  /// Their source lines; empty if unknown. With a graph, the graph's lines are used.
  std::vector<std::string> argument_places = {}, result_places = {};
  /// Whether each argument's memory is donated to a result.
  std::vector<bool> donated;
  std::size_t num_captured = 0;
  /// The recorded program; none for a module from elsewhere.
  std::optional<Graph> graph = std::nullopt;
  /// The compile for a target, with the options that the framework that wrote the program would
  /// pass to the compiler: whether it lets the compiler choose the sharding of each argument and
  /// result. None: the program is compiled for the hardware of this process.
  std::optional<CompileRequest> request = std::nullopt;
  /// What the report says about the hardware if there is no target.
  TargetSummary hardware = {};
  /// The process of each device, if the report distinguishes processes.
  std::optional<ProcessMap> processes = std::nullopt;
  LinkOptions links = {};
  /// Costs of custom calls that the user gives.
  std::vector<GivenCost> costs = {};
  /// The operations of a trace of the program; none if none is given.
  std::optional<std::vector<TraceOp>> measured = std::nullopt;
  /// The devices of a run of several processes, for a program of this process.
  std::optional<Topology> topology = std::nullopt;
  /// What a module from elsewhere says about its ops.
  stablehlo::ModuleOpNames op_names = {};
  /// Assumptions that were made.
  std::vector<std::string> notes = {};

  /// The target hardware; null: the hardware of this process.
  const Target* target() const { return request ? &request->target : nullptr; }
};

/// Sets the facts of a recorded program: its graph, parameter names and donated parameters.
void describe_graph(const Graph& graph, const std::vector<std::string>& parameter_names,
                    const std::vector<std::uint32_t>& donated, ProgramFacts& facts);

/// The processes of a target's devices; none if the links do not distinguish them.
/// @error invalid argument: the devices cannot be divided into as many processes, or a link between
/// processes is given and there is only one
Result<std::optional<ProcessMap>> processes_of(const Target& target, const LinkOptions& links);

/// The facts of a module from elsewhere, placed on a target. For shardings that cannot be parsed,
/// the compiler's are used.
/// @error invalid argument: the mesh does not fit the target or the module (the message has both
/// numbers), or an argument has an unknown size. unimplemented: an element type of unknown size.
Result<ProgramFacts> facts_of_module(const stablehlo::ModuleFacts& module, const Target& target,
                                     const ModuleLayout& layout = {});

}  // namespace meshard
