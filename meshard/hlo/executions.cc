#include "meshard/hlo/executions.h"

#include <algorithm>

#include "meshard/base/saturating.h"
#include "meshard/hlo/trip_count.h"

namespace meshard {
namespace {

// The runs that one call contributes to the callee.
ComputationRuns by_call(const ComputationRuns& caller, CallKind kind,
                        const std::optional<std::int64_t>& trips) {
  ComputationRuns runs = caller;
  bool loop = kind == CallKind::kLoopBody || kind == CallKind::kLoopCondition;
  if (loop) {
    ++runs.loop_depth;
    runs.known = runs.known && trips.has_value();
    std::int64_t count = trips.value_or(1);
    if (kind == CallKind::kLoopCondition && trips) ++count;
    runs.executions = saturating_multiply(runs.executions, count);
  }
  runs.conditional = runs.conditional || kind == CallKind::kBranch;
  runs.fused = runs.fused || kind == CallKind::kFusion;
  runs.applied = runs.applied || kind == CallKind::kApplied;
  return runs;
}

void add(const ComputationRuns& call, ComputationRuns& to) {
  to.executions = saturating_add(to.executions, call.executions);
  to.known = to.known && call.known;
  to.loop_depth = std::max(to.loop_depth, call.loop_depth);
  to.conditional = to.conditional && call.conditional;
  to.fused = to.fused || call.fused;
  to.applied = to.applied && call.applied;
}

}  // namespace

Executions::Executions(const ModuleIndex& module, Calls calls)
    : module_(&module), calls_(std::move(calls)) {}

Result<Executions> Executions::of(const ModuleIndex& module) {
  MESHARD_ASSIGN_OR_RETURN(Calls calls, Calls::of(module));
  Executions executions(module, std::move(calls));
  executions.count();
  return executions;
}

void Executions::count() {
  const std::vector<ReachedComputation>& reached = calls_.callers_first();
  runs_.resize(reached.size());
  std::vector<bool> called_before(reached.size(), false);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const InstructionIndex& index = *reached[i].index;
    for (const HloInstruction& each : index.computation().instructions) {
      if (each.called_computations.empty() || each.opcode == "async-update" ||
          each.opcode == "async-done")
        continue;
      std::optional<std::int64_t> trips;
      if (each.opcode == "while") {
        trips = meshard::trip_count(*module_, calls_, index, each);
        if (trips) trip_counts_.emplace(&each, *trips);
      }
      for (std::size_t n = 0; n < each.called_computations.size(); ++n) {
        if (calls_.find(each.called_computations[n]) == nullptr) continue;
        std::size_t callee = calls_.position(each.called_computations[n]);
        ComputationRuns call = by_call(runs_[i], call_kind(each, n), trips);
        if (called_before[callee])
          add(call, runs_[callee]);
        else
          runs_[callee] = call;
        called_before[callee] = true;
      }
    }
  }
}

const ComputationRuns* Executions::find(std::int64_t computation) const {
  return calls_.find(computation) ? &runs_[calls_.position(computation)] : nullptr;
}

std::optional<std::int64_t> Executions::trip_count(const HloInstruction& loop) const {
  auto found = trip_counts_.find(&loop);
  return found == trip_counts_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace meshard
