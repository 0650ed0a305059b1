#include "meshard/hlo/calls.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "meshard/base/error.h"

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

}  // namespace meshard
