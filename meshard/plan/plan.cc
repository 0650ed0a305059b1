#include "meshard/plan/plan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"
#include "meshard/explain/predict/module_program.h"
#include "meshard/explain/predict/predict.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/target/hardware.h"

namespace meshard {
namespace {

// State that the problem's functions share.
struct PlannedModule {
  ModuleTemplate module;
  FreeArguments free;
  ModuleProgram program;
  Target target;
  ExplainModuleOptions explain;
};

// The specs of all arguments and results for a candidate.
struct AllSpecs {
  std::vector<std::optional<PartitionSpec>> arguments, results;
};

AllSpecs specs_of(const PlannedModule& plan, const PlanCandidate& candidate) {
  AllSpecs all;
  for (const TemplateValue& value : plan.module.arguments()) all.arguments.push_back(value.spec);
  for (const TemplateValue& value : plan.module.results()) all.results.push_back(value.spec);
  for (std::size_t v = 0; v < plan.free.values.size(); ++v)
    for (std::size_t i : plan.free.arguments[v]) {
      all.arguments[i] = candidate.specs[v];
      std::optional<std::size_t> result = plan.module.arguments()[i].aliased_result;
      if (result && *result < all.results.size()) all.results[*result] = candidate.specs[v];
    }
  return all;
}

PlanEstimate estimate_module(const PlannedModule& plan, const PlanCandidate& candidate) {
  AllSpecs all = specs_of(plan, candidate);
  PlanEstimate estimate;
  double devices = 1;
  for (const MeshAxis& axis : candidate.axes) devices *= static_cast<double>(axis.size);
  for (std::size_t i = 0; i < all.arguments.size(); ++i) {
    const std::optional<TensorType>& type = plan.module.arguments()[i].type;
    if (!type) continue;
    // Without a spec the compiler chooses, and may shard over all devices.
    estimate.least_memory += all.arguments[i]
                                 ? shard_bytes(*all.arguments[i], *type, candidate.axes)
                                 : static_cast<double>(type->bytes()) / devices;
  }
  estimate.communication =
      plan.program.communication(Mesh(candidate.axes), all.arguments, all.results);
  return estimate;
}

// The axes to search over: the named ones, which must include all that the module uses.
std::vector<std::string> axes_of(const ModuleTemplate& module, std::vector<std::string> named) {
  if (named.empty())
    for (const MeshAxis& axis : module.axes()) named.push_back(axis.name);
  if (named.empty())
    throw_invalid({}, "[plan] the module has no mesh: specify the names of the mesh axes");
  for (const MeshAxis& axis : module.axes())
    if (std::find(named.begin(), named.end(), axis.name) == named.end())
      throw_invalid({}, "[plan] the module's mesh has axis `", axis.name,
                    "`, which is not one of the specified axes ", join(named, ", "));
  return named;
}

void pin_axes(const PlanModuleOptions& options, const ModuleTemplate& module,
              PlanProblem& problem) {
  problem.pinned = options.pinned;
  for (const auto& [axis, size] : module.pinned()) {
    auto [place, fresh] = problem.pinned.emplace(axis, size);
    if (!fresh && place->second != size)
      throw_invalid({}, "[plan] axis `", axis, "` cannot have size ", place->second,
                    ": the manual computations or device groups of the module require size ", size);
  }
}

}  // namespace

std::optional<std::int64_t> device_memory(const Target& target) {
  std::optional<HardwareFigures> figures = hardware_figures(target.topology());
  if (!figures || figures->memory_bytes <= 0) return std::nullopt;
  return figures->memory_bytes;
}

ModulePlan plan_of_module(std::string text, const Target& target, const PlanModuleOptions& options,
                          SourceLocation where) try {
  std::string identity = cat(fingerprint(text), "\n", target.name(), "\n",
                             options.explain.use_shardy.value_or(true) ? "shardy" : "gspmd");
  for (const auto& [name, value] : options.explain.overrides) append(identity, cat("\n", name));
  ModuleTemplate module = ModuleTemplate::parse(std::move(text)).value();
  FreeArguments free = module.free(options.free).value();
  ModuleProgram program = ModuleProgram::of(module.module()).value();
  auto shared = std::make_shared<const PlannedModule>(
      PlannedModule{module, free, std::move(program), target, options.explain});
  ModulePlan made{{}, std::move(module), std::move(free)};
  PlanProblem& problem = made.problem;
  problem.axes = axes_of(made.module, options.axes);
  pin_axes(options, made.module, problem);
  problem.identity = std::move(identity);
  problem.devices = target.size();
  problem.values = made.free.values;
  problem.capacity = device_memory(target);
  problem.suits = [shared](const std::vector<MeshAxis>& axes) {
    return shared->module.suits(axes, shared->free);
  };
  problem.estimate = [shared](const PlanCandidate& candidate) {
    return estimate_module(*shared, candidate);
  };
  problem.compile = [shared](const PlanCandidate& candidate) {
    return internal::report_of_module(shared->module.with(candidate, shared->free), shared->target,
                                      shared->explain);
  };
  return made;
} catch (const Error& error) {
  throw error.at(where);
}

PlanEstimate internal::estimate_of_program(const TracedProgram& traced, std::int64_t devices) {
  PlanEstimate estimate;
  const Graph& graph = traced.program.graph;
  estimate.communication = static_cast<double>(predict(graph).bytes());
  for (std::span<const Value> leaves : {graph.parameters(), graph.captured()})
    for (const Value& leaf : leaves) {
      const Sharding* placed = leaf_sharding(leaf);
      std::optional<Sharding> sharding = placed ? std::optional(*placed) : marked_sharding(leaf);
      // Without a sharding the compiler chooses, and may shard over all devices.
      std::int64_t parts = sharding ? sharding->num_tiles() : devices;
      estimate.least_memory +=
          static_cast<double>(leaf.type().bytes()) / static_cast<double>(parts);
    }
  return estimate;
}

}  // namespace meshard
