#include "meshard/explain/explain_for.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/explain/program_facts.h"
#include "meshard/explain/report_of.h"
#include "meshard/lowering/lower.h"
#include "meshard/stablehlo/jax_export.h"

namespace meshard {
namespace {

// Compiles a module and reports on it, also if the program does not fit into memory.
Result<ProgramReport> explain_compiled(
    std::string module, const Target& target, const ProgramFacts& facts, bool use_shardy,
    const std::map<std::string, pjrt::CompileOptions::Override>& overrides,
    const CompileForOptions& options) {
  CompileRequest request{.module = std::move(module),
                         .target = target,
                         .num_partitions = static_cast<int>(facts.program.num_partitions()),
                         .use_shardy = use_shardy,
                         .propagate_to_arguments = facts.propagate_to_arguments,
                         .propagate_to_results = facts.propagate_to_results,
                         .as_jax = facts.compiled_as_jax,
                         .overrides = overrides};
  if (facts.program.mesh)
    for (std::int64_t id : facts.program.mesh->device_ids())
      request.device_ids.push_back(static_cast<int>(id));
  Result<Compiled> compiled = compile_for(request, options);
  if (!compiled.ok()) {
    if (compiled.error().code() == ErrorCode::kResourceExhausted)
      return report_of_refused(compiled.error(), facts);
    return compiled.error();
  }
  return report_of(*compiled, facts);
}

// The operations of a trace file; none for an empty path.
Result<std::optional<std::vector<TraceOp>>> measured_ops(const std::string& path) {
  if (path.empty()) return std::optional<std::vector<TraceOp>>();
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, read_whole_file(path));
  Result<std::vector<TraceOp>> ops = read_trace_ops(bytes);
  if (!ops.ok()) return ops.error().with_note(cat("in ", path));
  return std::optional(*std::move(ops));
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
  bool made_for =
      std::find(platforms.begin(), platforms.end(), target.platform()) != platforms.end();
  if (!made_for && !exported.any_platform)
    return invalid("is for ", join(platforms, ", "), ", not for ", target.platform());
  return {};
}

// Names the argument that tells the platform, if the program was exported for several.
void describe_platforms(const stablehlo::JaxExport& exported, stablehlo::ModuleFacts& module,
                        std::vector<std::string>& notes) {
  if (exported.platforms.size() < 2) return;
  if (!module.arguments.empty() && module.arguments[0].name.empty())
    module.arguments[0].name = "the platform's number";
  notes.push_back(cat("the program was exported for ", join(exported.platforms, ", "),
                      ": argument 0 is the number of the platform, and the code for the others is "
                      "compiled, too (export it for one platform to leave it out)"));
}

}  // namespace

Result<ProgramReport> internal::report_of_module(std::string_view module, const Target& target,
                                                 const ExplainModuleOptions& options) {
  std::optional<stablehlo::JaxExport> exported;
  if (stablehlo::is_jax_export(module)) {
    MESHARD_ASSIGN_OR_RETURN(exported, stablehlo::read_jax_export(module));
    MESHARD_RETURN_IF_ERROR(check_export(*exported, target));
    module = exported->module;
  }
  MESHARD_ASSIGN_OR_RETURN(stablehlo::ModuleFacts read, stablehlo::read_module(module));
  std::vector<std::string> notes;
  if (exported) {
    describe_export(*exported, read);
    describe_platforms(*exported, read, notes);
  }
  MESHARD_ASSIGN_OR_RETURN(ProgramFacts facts, facts_of_module(read, target, options.layout));
  facts.notes.insert(facts.notes.end(), notes.begin(), notes.end());
  MESHARD_RETURN_IF_ERROR(describe_links(options.links, facts));
  facts.costs = options.costs;
  MESHARD_ASSIGN_OR_RETURN(facts.measured, measured_ops(options.measured));
  bool use_shardy = options.use_shardy.value_or(read.uses_shardy || !read.has_mhlo_shardings);
  return explain_compiled(std::string(module), target, facts, use_shardy, options.overrides,
                          options.compile);
}

ProgramReport explain_module(std::string_view module, const Target& target,
                             const ExplainModuleOptions& options, SourceLocation where) {
  Result<ProgramReport> report = internal::report_of_module(module, target, options);
  if (!report.ok()) throw report.error().at(where);
  return *std::move(report);
}

std::string internal::module_text_of(const TracedProgram& traced) {
  return lower_for_file(traced.program);
}

ProgramReport internal::explain_traced(const Target& target, TracedProgram traced,
                                       const ExplainForOptions& options) {
  ProgramFacts facts;
  facts.program = lower(
      traced.program, {.platform = [&](const std::optional<Mesh>&) { return target.platform(); }});
  facts.target = target;
  describe_graph(traced.program.graph, traced.program.parameter_names, traced.program.donated,
                 facts);
  if (facts.program.mesh) check_devices(*facts.program.mesh, target, traced.where);
  if (Result<void> links = describe_links(options.links, facts); !links.ok())
    throw links.error().at(traced.where);
  facts.costs = options.costs;
  Result<std::optional<std::vector<TraceOp>>> measured = measured_ops(options.measured);
  if (!measured.ok()) throw measured.error().at(traced.where);
  facts.measured = *std::move(measured);
  Result<ProgramReport> report = explain_compiled(
      facts.program.text, target, facts, /*use_shardy=*/true, options.overrides, options.compile);
  if (!report.ok()) throw report.error().at(traced.where);
  return *std::move(report);
}

}  // namespace meshard
