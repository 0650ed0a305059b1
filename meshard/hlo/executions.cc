#include "meshard/hlo/executions.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "meshard/base/error.h"
#include "meshard/base/saturating.h"

namespace meshard {
namespace {

constexpr int kMostDepth = 256;

bool calls_again(const HloInstruction& one) {
  return one.opcode == "async-update" || one.opcode == "async-done";
}

// Depth-first walk that lists each computation after all its callees.
class Walk {
 public:
  explicit Walk(const ModuleIndex& module) : module_(module) {}

  Result<void> visit(std::int64_t id, int depth) {
    const InstructionIndex* index = module_.find(id);
    if (index == nullptr || done_.contains(id)) return {};
    if (depth > kMostDepth || !open_.insert(id).second)
      return Error(ErrorCode::kDataLoss,
                   "[hlo] the module's computations are cyclic or nested too deeply");
    for (const HloInstruction& each : index->computation().instructions)
      if (!calls_again(each))
        for (std::int64_t called : each.called_computations)
          MESHARD_RETURN_IF_ERROR(visit(called, depth + 1));
    open_.erase(id);
    done_.insert(id);
    callees_first_.push_back(index);
    return {};
  }

  const std::vector<const InstructionIndex*>& callees_first() const { return callees_first_; }

 private:
  const ModuleIndex& module_;
  std::unordered_set<std::int64_t> open_, done_;
  std::vector<const InstructionIndex*> callees_first_;
};

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

CallKind call_kind(const HloInstruction& instruction, std::size_t number) {
  std::string_view opcode = instruction.opcode;
  if (opcode == "while") return number == 0 ? CallKind::kLoopBody : CallKind::kLoopCondition;
  if (opcode == "conditional") return CallKind::kBranch;
  if (opcode == "fusion") return CallKind::kFusion;
  if (opcode == "call" || opcode == "async-start" || opcode == "custom-call")
    return CallKind::kCall;
  return CallKind::kApplied;
}

Result<Calls> Calls::of(const ModuleIndex& module) {
  Walk walk(module);
  MESHARD_RETURN_IF_ERROR(walk.visit(module.module().entry_id, 0));
  Calls calls;
  const auto& order = walk.callees_first();
  for (auto index = order.rbegin(); index != order.rend(); ++index) {
    calls.position_.emplace((*index)->computation().id, calls.reached_.size());
    calls.reached_.push_back({.index = *index});
  }
  for (std::size_t i = 0; i < calls.reached_.size(); ++i) {
    const InstructionIndex& caller = *calls.reached_[i].index;
    for (const HloInstruction& each : caller.computation().instructions) {
      if (calls_again(each)) continue;
      for (std::size_t n = 0; n < each.called_computations.size(); ++n) {
        auto found = calls.position_.find(each.called_computations[n]);
        if (found == calls.position_.end()) continue;
        ReachedComputation& called = calls.reached_[found->second];
        if (called.num_calls++ > 0) continue;
        called.kind = call_kind(each, n);
        called.caller = &caller;
        called.call = &each;
      }
    }
  }
  return calls;
}

const ReachedComputation* Calls::find(std::int64_t computation) const {
  auto found = position_.find(computation);
  return found == position_.end() ? nullptr : &reached_[found->second];
}

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
