#include "meshard/plan/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"
#include "meshard/explain/cost/link_use.h"
#include "meshard/explain/predict/module_program.h"
#include "meshard/explain/predict/predict.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/target/compile_workers.h"

namespace meshard {
namespace {

// State that the problem's functions share.
struct PlannedModule {
  ModuleTemplate module;
  FreeArguments free;
  ModuleProgram program;
  Target target;
  ExplainForOptions explain;
  std::shared_ptr<std::atomic<bool>> ended;
};

// A mesh on the target, with what a collective takes on it. The model is null if the hardware's
// figures are unknown.
struct PlacedMesh {
  Mesh mesh;
  std::shared_ptr<const LinkModel> links;
};

// Not thread-safe.
class PlacedMeshes {
 public:
  explicit PlacedMeshes(const Target& target) : target_(target) {}

  const PlacedMesh& of(const std::vector<MeshAxis>& axes) {
    auto [place, is_new] = meshes_.try_emplace(axes_text(axes));
    if (is_new) place->second = placed(mesh_on_target(axes, target_, DeviceOrder::kTorus).value());
    return place->second;
  }

 private:
  PlacedMesh placed(Mesh mesh) const {
    std::optional<HardwareFigures> figures = hardware_figures(target_.topology());
    if (!figures) return {std::move(mesh), nullptr};
    auto links = std::make_shared<const LinkModel>(*figures, mesh, target_.topology());
    return {std::move(mesh), std::move(links)};
  }

  Target target_;
  std::map<std::string, PlacedMesh> meshes_;
};

PlanEstimate estimate_module(const PlannedModule& plan, PlacedMeshes& meshes,
                             const PlanCandidate& candidate) {
  BoundarySpecs all = plan.module.specs(candidate, plan.free);
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
  const PlacedMesh& placed = meshes.of(candidate.axes);
  if (!placed.links) {
    estimate.communication = plan.program.communication(placed.mesh, all.arguments, all.results);
    return estimate;
  }
  PredictedTime time = plan.program.time(placed.mesh, *placed.links, all.arguments, all.results);
  estimate.communication = time.communication;
  estimate.seconds = time.seconds();
  return estimate;
}

// What it takes to bring results to the shardings of the arguments that they are in the next run.
ReturnCost return_cost_of(const PlannedModule& plan, const ProgramReport& report) {
  ReturnCost cost;
  std::optional<HardwareFigures> figures = hardware_figures(plan.target.topology());
  const std::vector<TemplateValue>& arguments = plan.module.arguments();
  for (std::size_t i = 0; i < arguments.size() && i < report.arguments().size(); ++i) {
    std::optional<std::size_t> result = arguments[i].next_result;
    if (!result || *result >= report.results().size()) continue;
    const std::optional<Sharding>& to = report.arguments()[i].sharding;
    const std::optional<Sharding>& from = report.results()[*result].sharding;
    if (!to || !from || *to == *from || to->mesh() != from->mesh()) continue;
    for (const ReshardStep& step : plan_reshard(*arguments[i].type, *from, *to).steps) {
      cost.bytes += step.bytes;
      if (!figures) continue;
      Collective one = predicted_collective(step.kind, step.axes, step.bytes, to->mesh().size());
      cost.seconds += LinkModel(*figures, to->mesh(), plan.target.topology()).seconds(one);
    }
  }
  return cost;
}

// The module's compiles end when the search does, and share processes.
ExplainForOptions options_of_search(ExplainForOptions options,
                                    std::shared_ptr<std::atomic<bool>> ended) {
  options.compile = internal::compile_in_search(std::move(options.compile), std::move(ended));
  options.entry.clear();  // the text of a ModuleTemplate has it already
  return options;
}

// The axes to search over: the named ones, which must include all that the module uses.
std::vector<std::string> axes_of(const ModuleTemplate& module, std::vector<std::string> named) {
  if (named.empty())
    for (const MeshAxis& axis : module.axes()) named.push_back(axis.name);
  if (named.empty())
    throw_invalid({}, "[plan] the module has no mesh: specify the names of the mesh axes");
  for (const MeshAxis& axis : module.axes())
    if (std::ranges::find(named, axis.name) == named.end())
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

ModulePlan plan_of_module(std::string text, const Target& target, const PlanModuleOptions& options,
                          SourceLocation where) try {
  std::string identity = cat(fingerprint(text), "\n", target.name(), "\n",
                             options.explain.use_shardy.value_or(true) ? "shardy" : "gspmd");
  for (const auto& [name, value] : options.explain.overrides) append(identity, "\n", name);
  if (!options.explain.entry.empty()) append(identity, "\nentry ", options.explain.entry);
  ModuleTemplate module = ModuleTemplate::parse(std::move(text), options.explain.entry).value();
  FreeArguments free = module.free(options.free).value();
  ModuleProgram program = ModuleProgram::of(module.module()).value();
  auto ended = std::make_shared<std::atomic<bool>>(false);
  auto shared = std::make_shared<const PlannedModule>(PlannedModule{
      module, free, std::move(program), target, options_of_search(options.explain, ended), ended});
  auto meshes = std::make_shared<PlacedMeshes>(target);
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
  problem.estimate = [shared, meshes](const PlanCandidate& candidate) {
    return estimate_module(*shared, *meshes, candidate);
  };
  problem.program_key = [shared, meshes](const PlanCandidate& candidate) {
    const Mesh& mesh = meshes->of(candidate.axes).mesh;
    return cat(join(mesh.device_ids(), ","), " ",
               shared->module.program_key(candidate, shared->free));
  };
  problem.compile = [shared](const PlanCandidate& candidate) {
    return internal::report_of_module(shared->module.with(candidate, shared->free), shared->target,
                                      shared->explain);
  };
  problem.return_cost = [shared](const ProgramReport& report) {
    return return_cost_of(*shared, report);
  };
  problem.given = made.module.as_given(problem.axes, made.free);
  problem.given_is_candidate = problem.given && made.module.is_given(*problem.given, made.free);
  problem.compile_given = [shared] {
    return internal::report_of_module(shared->module.module().text(), shared->target,
                                      shared->explain);
  };
  problem.is_concurrent = true;
  problem.ended = std::move(ended);
  return made;
} catch (const Error& error) {
  throw error.at(where);
}

CompileForOptions internal::compile_in_search(CompileForOptions options,
                                              std::shared_ptr<std::atomic<bool>> ended) {
  if (!options.workers) options.workers = std::make_shared<CompileWorkers>();
  options.is_cancelled = [own = std::move(options.is_cancelled), ended = std::move(ended)] {
    return ended->load() || (own && own());
  };
  return options;
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
