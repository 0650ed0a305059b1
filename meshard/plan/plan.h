// plan: searches for the mesh and shardings that suit a program best on a target.
#pragma once
#include <atomic>
#include <concepts>
#include <memory>
#include <string>
#include <vector>

#include "meshard/explain/explain.h"
#include "meshard/plan/module_template.h"
#include "meshard/plan/search.h"
#include "meshard/target/target.h"

namespace meshard {

/// Options of plan_of_module().
struct PlanModuleOptions {
  /// The names of the mesh axes. Default: the module's own axes.
  std::vector<std::string> axes = {};
  /// Axes with a fixed size. Default: none.
  std::map<std::string, std::int64_t> pinned = {};
  /// Arguments whose dimensions are all free, by name (`*` matches any text) or by number. Open
  /// dimensions (`{?}`) of other arguments are free too. Default: none.
  std::vector<std::string> free = {};
  /// How candidates are compiled; layout.axes is not used.
  ExplainForOptions explain = {};
  PlanOptions search = {};
};

/// A module prepared for search(). The functions of `problem` own the data they need.
struct ModulePlan {
  PlanProblem problem;
  ModuleTemplate module;
  FreeArguments free;
};

/// Parses a module and makes a search problem from it. The module as it is written is the given
/// candidate. Others are ordered by the time that ModuleProgram predicts, or by the bytes moved
/// where the hardware's figures are unknown; those whose arguments alone exceed the device's
/// published memory are ruled out.
///
/// If the module is a step, whose results are arguments of the next run (find_next_results()), each
/// such result has its argument's sharding in all candidates. Where the given module shards one
/// otherwise, its verdict includes the time to bring it back.
/// @error errors of ModuleTemplate; invalid argument: the module uses an axis that is not named, or
/// axes that the module depends on have different sizes
ModulePlan plan_of_module(std::string text, const Target& target,
                          const PlanModuleOptions& options = {},
                          SourceLocation where = SourceLocation::current());

namespace internal {
/// Compiles that end when the flag is set, in processes that they share.
CompileForOptions compile_in_search(CompileForOptions options,
                                    std::shared_ptr<std::atomic<bool>> ended);

/// The bytes that predict() expects to move, and the arguments' shards.
PlanEstimate estimate_of_program(const TracedProgram& traced, std::int64_t devices);
}  // namespace internal

/// Searches meshes and shardings of `values` for the program that `builder` traces or explains.
/// Meshes cover all devices of the target, along its torus.
///
/// ```
/// Target target = Target::parse("v5e:4x4").value();
/// FreeValue w{"w", {DType::bf16, {8192, 8192}}, P(unconstrained, unconstrained)};
/// PlanResult found = plan(target, {"data", "model"}, {w},
///                         [&](const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
///   Tensor x = abstract_tensor({4096, 8192}, DType::bf16, mesh, P("data", none));
///   Tensor w = abstract_tensor({8192, 8192}, DType::bf16, mesh, specs[0]);
///   return trace_program(layer, x, w);
/// });
/// std::cout << found.to_string();
/// ```
///
/// @param builder called with a mesh and a spec for each value; returns a TracedProgram, or a
/// ProgramReport. It is called twice for a traced program. These are compiled in the order of the
/// bytes that predict() expects to move; reports, in the order of the values' bytes on a device.
/// @param options if it names a journal, `identity` must identify the program
/// @error as search()
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
  auto build = [&](const PlanCandidate& candidate) {
    return builder(mesh_on_target(candidate.axes, target, DeviceOrder::kTorus).value(),
                   candidate.specs);
  };
  if constexpr (std::same_as<decltype(build(PlanCandidate())), TracedProgram>) {
    problem.estimate = [&](const PlanCandidate& candidate) {
      try {
        return internal::estimate_of_program(build(candidate), target.size());
      } catch (const Error&) {
        return PlanEstimate();  // the same error is the verdict, when the candidate's turn comes
      }
    };
    ExplainForOptions explained;
    problem.ended = std::make_shared<std::atomic<bool>>(false);
    explained.compile = internal::compile_in_search({}, problem.ended);
    problem.compile = [&, explained](const PlanCandidate& candidate) -> Result<ProgramReport> {
      return explain(target, build(candidate), explained);
    };
  } else {
    problem.compile = [&](const PlanCandidate& candidate) -> Result<ProgramReport> {
      return build(candidate);
    };
  }
  return search(problem, options);
}

}  // namespace meshard
