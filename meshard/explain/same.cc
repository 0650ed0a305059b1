#include "meshard/explain/same.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/lowering/module_boundary.h"
#include "meshard/stablehlo/compiler_text.h"
#include "meshard/stablehlo/custom_calls.h"
#include "meshard/stablehlo/jax_export.h"
#include "meshard/stablehlo/module_reader.h"

namespace meshard {
namespace {

struct Identified {
  std::int64_t devices = 1;
  ProgramIdentity identity;
};

Result<Identified> identify(std::string_view module, const CompileForOptions& options) {
  if (stablehlo::is_jax_export(module)) {
    MESHARD_ASSIGN_OR_RETURN(stablehlo::JaxExport exported, stablehlo::read_jax_export(module));
    if (std::string symbolic = exported.symbolic_argument(); !symbolic.empty())
      return Error(ErrorCode::kInvalidArgument,
                   cat("[same] an argument has symbolic sizes ", symbolic,
                       ": export it for the sizes that it runs with"));
    module = exported.module;
  }
  CompileRequest request;
  request.keep_source = true;
  if (stablehlo::is_module_text(module)) {
    MESHARD_ASSIGN_OR_RETURN(stablehlo::CompilerText made, stablehlo::text_for_compiler(module));
    request.module = std::move(made.text);
  } else {
    MESHARD_ASSIGN_OR_RETURN(stablehlo::CompilerText made,
                             stablehlo::bytecode_for_compiler(std::string(module)));
    request.module = std::move(made.text);
  }
  MESHARD_ASSIGN_OR_RETURN(stablehlo::ModuleFacts facts, stablehlo::read_module(request.module));
  const std::int64_t devices = devices_of_module(facts);
  MESHARD_ASSIGN_OR_RETURN(request.target, Target::parse(cat("cpu:", devices)));
  request.options.num_partitions = static_cast<int>(devices);
  request.options.use_shardy = facts.is_for_shardy();
  // Only the module as it was read is needed.
  request.options.overrides["xla_backend_optimization_level"] = std::int64_t{0};
  request.options.overrides["xla_llvm_disable_expensive_passes"] = true;
  MESHARD_ASSIGN_OR_RETURN(Compiled compiled, compile_for(request, options));
  if (compiled.source_program.empty())
    return Error(ErrorCode::kUnimplemented, cat("[same] the compiler ", compiled.platform_version,
                                                " does not dump the modules that it reads"));
  MESHARD_ASSIGN_OR_RETURN(ProgramIdentity identity,
                           ProgramIdentity::from_bytes(compiled.source_program));
  return Identified{devices, std::move(identity)};
}

std::string devices_text(std::int64_t devices) {
  return cat("a program for ", devices, devices == 1 ? " device" : " devices");
}

}  // namespace

bool SameReport::same() const {
  return std::ranges::none_of(
      programs, [](const ComparedProgram& each) { return each.difference.has_value(); });
}

std::string SameReport::to_string() const {
  std::vector<std::string> equal;
  std::string others;
  for (const ComparedProgram& each : programs) {
    if (!each.difference) {
      equal.push_back(each.name);
      continue;
    }
    const ModuleDifference& found = *each.difference;
    append(others, cat(each.name, " is another computation. The first difference",
                       found.detail.empty() ? "" : cat(" (", found.detail, ")"), ":\n  ",
                       programs.front().name, "  ", found.first, "\n  ", each.name, "  ",
                       found.second, "\n"));
  }
  const ComparedProgram& first = programs.front();
  return cat(join(equal, ", "), equal.size() > 1 ? " are the same computation: " : ": ",
             first.fingerprint, ", ", first.ops, " ops on ", first.devices,
             first.devices == 1 ? " device" : " devices", "\n", others);
}

SameReport compare_programs(std::span<const NamedProgram> programs,
                            const CompileForOptions& options, SourceLocation where) {
  if (programs.empty()) throw_invalid(where, "[same] there is no program to compare");
  SameReport report;
  std::optional<Identified> first;
  for (const NamedProgram& each : programs) {
    Result<Identified> found = identify(each.module, options);
    if (!found.ok()) throw found.error().at(where).with_note(cat("in ", each.name));
    ComparedProgram one{std::string(each.name), found->identity.fingerprint().to_string(),
                        found->devices, static_cast<std::int64_t>(found->identity.ops())};
    if (first && first->devices != found->devices)
      one.difference = {devices_text(first->devices), devices_text(found->devices), {}};
    else if (first)
      one.difference = first_difference(first->identity, found->identity);
    report.programs.push_back(std::move(one));
    if (!first) first = *std::move(found);
  }
  return report;
}

}  // namespace meshard
