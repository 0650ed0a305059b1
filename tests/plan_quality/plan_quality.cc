// Tested in tests/plan_quality/plan_quality_test.cc.
#include "tests/plan_quality/plan_quality.h"

#include <set>

#include "meshard/base/whole_file.h"
#include "meshard/plan/candidate_pool.h"

namespace meshard {
namespace {

PlanVerdict judge(const PlanProblem& problem, const Result<ProgramReport>& report) {
  if (!report.ok()) return {.outcome = PlanOutcome::kRefused, .problem = report.error().message()};
  PlanVerdict verdict = verdict_of(*report, 0);
  ReturnCost cost = problem.return_cost(*report);
  verdict.return_seconds = cost.seconds;
  verdict.seconds += cost.seconds;
  return verdict;
}

}  // namespace

ModulePlan plan_of_program(const std::string& folder, const std::string& name,
                           const std::string& topology, bool use_cache) {
  PlanModuleOptions options;
  options.free = {"*"};
  options.explain.compile.use_cache = use_cache;
  return plan_of_module(read_whole_file(folder + "/" + name + ".mlir").value(),
                        Target::parse(topology).value(), options);
}

PlanVerdict verdict_of_candidate(const PlanProblem& problem, const PlanCandidate& candidate) {
  return judge(problem, problem.compile(candidate));
}

PlanVerdict verdict_of_given(const PlanProblem& problem) {
  return judge(problem, problem.compile_given());
}

std::vector<PlanCandidate> single_changes(const PlanProblem& problem) {
  std::vector<PlanCandidate> all;
  std::set<std::string> seen;
  auto add = [&](const PlanCandidate& one) {
    for (std::size_t v = 0; v < one.specs.size(); ++v)
      if (!divides(one.specs[v], problem.values[v].type.shape, one.axes)) return;
    if (seen.insert(one.to_string()).second) all.push_back(one);
  };
  for (const std::vector<MeshAxis>& axes : meshes_of(problem)) {
    PlanCandidate base{.axes = axes, .specs = problem.given->specs};
    add(base);
    for (std::size_t v = 0; v < base.specs.size(); ++v)
      for (PartitionSpec& spec : spec_candidates(problem.values[v], axes)) {
        PlanCandidate changed = base;
        changed.specs[v] = std::move(spec);
        add(changed);
      }
  }
  return all;
}

}  // namespace meshard
