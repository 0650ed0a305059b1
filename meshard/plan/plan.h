// plan: which mesh and which shardings suit a program on a target.
#pragma once
#include <string>
#include <vector>

#include "meshard/explain/explain_for.h"
#include "meshard/plan/module_template.h"
#include "meshard/plan/search.h"
#include "meshard/target/target.h"

namespace meshard {

/// Bytes of one device's main memory by its published figures; none if they are not known.
std::optional<std::int64_t> device_memory(const Target& target);

/// What of a module is to be planned, and how.
struct PlanModuleOptions {
  /// The mesh's axes by name; empty: the module's own.
  std::vector<std::string> axes = {};
  /// Axes whose size is given.
  std::map<std::string, std::int64_t> pinned = {};
  /// Arguments that may be placed wholly anew, by name with `*` or by number. Beside these, open
  /// dimensions (`{?}`) of arguments are free.
  std::vector<std::string> free = {};
  /// How candidates are compiled; layout.axes is not used.
  ExplainModuleOptions explain = {};
  PlanOptions search = {};
};

/// A module that is ready to be searched: what `problem` calls is kept by its functions.
struct ModulePlan {
  PlanProblem problem;
  ModuleTemplate module;
  FreeArguments free;
};

/// Reads a module and makes the problem of it. Candidates are put in an order by the bytes that
/// ModuleFlow says they move; those whose arguments alone exceed the device's published memory are
/// ruled out.
/// @error what ModuleTemplate says; invalid argument: the module uses an axis that is not named, or
/// the axes it depends on do not have their sizes
Result<ModulePlan> plan_of_module(std::string text, const Target& target,
                                  const PlanModuleOptions& options = {});

/// Searches meshes over all devices of a target, laid along its torus, and the specs of `values`
/// for the program that `builder` explains.
///
/// ```
/// Target target = Target::parse("v5e:4x4").value();
/// PlanResult found = plan(target, {"data", "model"}, {{"w", {DType::bf16, {8192, 8192}}, P(open,
/// open)}},
///                         [&](const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
///   Tensor x = abstract_tensor({4096, 8192}, DType::bf16, mesh, P("data", none));
///   Tensor w = abstract_tensor({8192, 8192}, DType::bf16, mesh, specs[0]);
///   return explain(target, layer, x, w);
/// });
/// std::cout << found.to_string();
/// ```
///
/// @param builder called with a mesh and a spec for each value; gives a ProgramReport
/// @param options a journal also needs `identity`, which stands for the program
/// @error what search() answers, thrown
template <class Builder>
PlanResult plan(const Target& target, std::vector<std::string> axes, std::vector<FreeValue> values,
                const Builder& builder, const PlanOptions& options = {},
                std::string identity = "") {
  PlanProblem problem;
  problem.identity = target.name() + "\n" + identity;
  problem.devices = target.size();
  problem.axes = std::move(axes);
  problem.values = std::move(values);
  problem.capacity = device_memory(target);
  problem.compile = [&](const PlanCandidate& candidate) -> Result<ProgramReport> {
    Mesh mesh = mesh_on_target(candidate.axes, target, DeviceOrder::kTorus).value();
    return builder(mesh, candidate.specs);
  };
  return search(problem, options).value();
}

}  // namespace meshard
