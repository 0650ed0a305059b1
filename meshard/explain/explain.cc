#include "meshard/explain/explain.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/explain/program_facts.h"
#include "meshard/explain/report_of.h"
#include "meshard/lowering/lower.h"
#include "meshard/pjrt/executable.h"
#include "meshard/runtime/device_topology.h"
#include "meshard/runtime/loaded_program.h"
#include "meshard/stablehlo/compiler_text.h"
#include "meshard/stablehlo/custom_calls.h"
#include "meshard/stablehlo/jax_export.h"
#include "meshard/stablehlo/platform_branch.h"

namespace meshard {
namespace {

// Compiles a program whose custom calls need no implementation here.
Result<Compiled> compile_with_calls(CompileRequest& request, const CompileForOptions& options) {
  while (true) {
    Result<Compiled> compiled = compile_for(request, options);
    if (compiled.ok()) return compiled;
    std::string target(unhandled_call(compiled.error(), kUntypedCallText));
    if (target.empty() || request.module.find('\0') != std::string::npos) return compiled;
    Result<std::string> typed = stablehlo::with_typed_calls(request.module, target);
    if (!typed.ok() || *typed == request.module) return compiled;
    request.module = *std::move(typed);
  }
}

// Compiles a module for the target of `facts`.
Result<Compiled> compile_as_explained(std::string module, ProgramFacts& facts, bool use_shardy,
                                      const ExplainForOptions& options) {
  CompileRequest& request = *facts.request;
  request.module = std::move(module);
  request.options.num_partitions = static_cast<int>(facts.program.num_partitions());
  request.options.use_shardy = use_shardy;
  request.options.overrides = options.overrides;
  if (facts.program.mesh)
    for (std::int64_t id : facts.program.mesh->device_ids())
      request.options.device_assignment.push_back(static_cast<int>(id));
  return compile_with_calls(request, options.compile);
}

// The operations of a trace file; none for an empty path.
Result<std::optional<std::vector<TraceOp>>> measured_ops(const std::string& path) {
  if (path.empty()) return std::optional<std::vector<TraceOp>>();
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, read_whole_file(path));
  Result<std::vector<TraceOp>> ops = read_trace_ops(bytes);
  if (!ops.ok()) return ops.error().with_note(cat("in ", path));
  return std::optional(*std::move(ops));
}

// The links, costs and times that a caller gives.
Result<void> describe_given(const ExplainForOptions& options, ProgramFacts& facts) {
  facts.links = options.links;
  MESHARD_ASSIGN_OR_RETURN(facts.processes, processes_of(*facts.target(), options.links));
  facts.costs = options.costs;
  MESHARD_ASSIGN_OR_RETURN(facts.measured, measured_ops(options.measured));
  return {};
}

void check_devices(const Mesh& mesh, const Target& target, SourceLocation where) {
  std::unordered_set<std::int64_t> ids;
  for (const DeviceAttributes& device : target.topology().devices()) ids.insert(device.id);
  for (std::int64_t id : mesh.device_ids())
    if (!ids.contains(id))
      throw_invalid(
          where, "[explain] device ", id, " of ", mesh, " is not a device of ", target.name(),
          ": make the mesh with torus_mesh(target.topology(), ...) or from its device ids");
}

// Checks that an exported program can be compiled for a target.
Result<void> check_export(const stablehlo::JaxExport& exported, const Target& target) {
  auto invalid = [](auto... parts) {
    return Error(ErrorCode::kInvalidArgument, cat("[explain] the exported program ", parts...));
  };
  if (std::string symbolic = exported.symbolic_argument(); !symbolic.empty())
    return invalid("has an argument of symbolic sizes ", symbolic,
                   ": export it for the sizes that it runs with");
  const std::vector<std::string>& platforms = exported.platforms;
  bool made_for = std::ranges::find(platforms, target.platform()) != platforms.end();
  if (!made_for && !exported.any_platform)
    return invalid("is for ", join(platforms, ", "), ", not for ", target.platform());
  return {};
}

// The module of a program that was exported for several platforms, with only the code of the
// target's.
Result<stablehlo::CompilerText> module_of_platform(const stablehlo::JaxExport& exported,
                                                   const Target& target) {
  const std::vector<std::string>& platforms = exported.platforms;
  auto found = std::ranges::find(platforms, target.platform());
  std::string all = join(platforms, ", ");
  if (found == platforms.end())
    return stablehlo::CompilerText{std::string(exported.module),
                                   {cat("the program was exported for ", all,
                                        ": argument 0 is the number of the platform, "
                                        "and the code for all of them is compiled")}};
  MESHARD_ASSIGN_OR_RETURN(
      stablehlo::PlatformBranch chosen,
      stablehlo::choose_platform(exported.module, std::distance(platforms.begin(), found)));
  std::string note = cat("the program was exported for ", all, ": this is its code for ", *found,
                         ". Argument 0 is the number of the platform");
  if (!chosen.is_complete)
    note = cat("the program was exported for ", all,
               ": argument 0 is the number of the platform, "
               "and the code for the others is compiled, too (export it for one platform to leave "
               "it out)");
  return stablehlo::CompilerText{std::move(chosen.module), {std::move(note)}};
}

// Replaces the custom calls that JAX's own compiler splits by their batch dimensions.
Result<void> replace_batched_calls(stablehlo::CompilerText& module) {
  MESHARD_ASSIGN_OR_RETURN(stablehlo::BatchedCalls made,
                           stablehlo::replace_batched_calls(module.text));
  if (made.targets.empty()) return {};
  std::set<std::string> names(made.targets.begin(), made.targets.end());
  std::size_t count = made.targets.size();
  module.notes.push_back(cat(count, count == 1 ? " custom call has" : " custom calls have",
                             " no handler here (", join(names, ", "),
                             "): other ops, which are split in the same way, replace ",
                             count == 1 ? "it" : "them",
                             ", so the collectives are those of the program, but not the "
                             "temporaries and the time"));
  module.text = std::move(made.text);
  return {};
}

// The module as the compiler gets it: text is prepared, bytecode stays as it is.
Result<stablehlo::CompilerText> module_for_compiler(std::string_view module,
                                                    const std::string& entry,
                                                    const Target& target) {
  if (stablehlo::is_module_text(module)) {
    MESHARD_ASSIGN_OR_RETURN(stablehlo::CompilerText made,
                             stablehlo::text_for_compiler(module, entry));
    if (target.platform() != "tpu") MESHARD_RETURN_IF_ERROR(replace_batched_calls(made));
    return made;
  }
  if (!entry.empty() && entry != "main")
    return Error(ErrorCode::kUnimplemented,
                 "[explain] an entry (--entry) can be chosen only in text, and the module is "
                 "bytecode, whose entry is `main`");
  MESHARD_ASSIGN_OR_RETURN(stablehlo::CompilerText made,
                           stablehlo::bytecode_for_compiler(std::string(module)));
  if (stablehlo::is_module_text(made.text)) {
    if (target.platform() != "tpu") MESHARD_RETURN_IF_ERROR(replace_batched_calls(made));
    return made;
  }
  if (target.platform() != "tpu" && module.find("num_batch_dims") != std::string_view::npos)
    made.notes.push_back(
        "the module is bytecode: operands of custom calls that JAX splits by their batch "
        "dimensions "
        "may be gathered here, and not in JAX. Pass the module as text");
  return made;
}

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

Result<CompiledModule> compile_module(std::string_view module, const Target& target,
                                      const ExplainForOptions& options) {
  std::optional<stablehlo::JaxExport> exported;
  stablehlo::CompilerText of_platform;
  if (stablehlo::is_jax_export(module)) {
    MESHARD_ASSIGN_OR_RETURN(exported, stablehlo::read_jax_export(module));
    MESHARD_RETURN_IF_ERROR(check_export(*exported, target));
    module = exported->module;
    if (exported->platforms.size() > 1) {
      MESHARD_ASSIGN_OR_RETURN(of_platform, module_of_platform(*exported, target));
      module = of_platform.text;
    }
  }
  MESHARD_ASSIGN_OR_RETURN(stablehlo::CompilerText made,
                           module_for_compiler(module, options.entry, target));
  MESHARD_ASSIGN_OR_RETURN(stablehlo::ModuleFacts read, stablehlo::read_module(made.text));
  if (read.arguments.empty() && read.results.empty())
    return Error(ErrorCode::kInvalidArgument,
                 "[explain] the function `main` of the module has neither arguments nor results: "
                 "there is nothing to explain");
  std::vector<std::string> notes = std::move(made.notes);
  if (exported) describe_export(*exported, read);
  if (!of_platform.text.empty() && !read.arguments.empty() && read.arguments[0].name.empty())
    read.arguments[0].name = "the platform's number";
  notes.insert(notes.end(), of_platform.notes.begin(), of_platform.notes.end());
  CompiledModule out;
  MESHARD_ASSIGN_OR_RETURN(out.facts, facts_of_module(read, target, options.layout));
  ProgramFacts& facts = out.facts;
  facts.notes.insert(facts.notes.end(), notes.begin(), notes.end());
  MESHARD_RETURN_IF_ERROR(describe_given(options, facts));
  bool use_shardy = options.use_shardy.value_or(read.is_for_shardy());
  out.compiled = compile_as_explained(std::move(made.text), facts, use_shardy, options);
  return out;
}

Result<ProgramReport> internal::report_of_module(std::string_view module, const Target& target,
                                                 const ExplainForOptions& options) {
  MESHARD_ASSIGN_OR_RETURN(CompiledModule made, compile_module(module, target, options));
  return report_of(made);
}

ProgramReport explain_module(std::string_view module, const Target& target,
                             const ExplainForOptions& options, SourceLocation where) {
  return internal::report_of_module(module, target, options).value(where);
}

std::string internal::module_text_of(const TracedProgram& traced) {
  return lower_for_file(traced.program);
}

ProgramReport internal::explain_traced(const Target& target, TracedProgram traced,
                                       const ExplainForOptions& options) {
  CompiledModule made;
  ProgramFacts& facts = made.facts;
  // The compiler, whose version is not known here, runs in another process.
  auto quirks = [&](const std::optional<Mesh>&) { return quirks_of(target.platform()).value(); };
  facts.program = lower(traced.program, {.quirks = quirks});
  facts.request.emplace().target = target;
  describe_graph(traced.program.graph, traced.program.parameter_names, traced.program.donated,
                 facts);
  if (facts.program.mesh) check_devices(*facts.program.mesh, target, traced.where);
  describe_given(options, facts).value(traced.where);
  made.compiled = compile_as_explained(facts.program.text, facts, /*use_shardy=*/true, options);
  return report_of(made).value(traced.where);
}

ProgramReport explain(const CompiledProgram& program, const LinkOptions& links,
                      SourceLocation where) {
  return report_of_loaded(view_of(program), links).value(where);
}

}  // namespace meshard
