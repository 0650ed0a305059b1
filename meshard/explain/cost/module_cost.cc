#include "meshard/explain/cost/module_cost.h"

#include <algorithm>

#include "meshard/explain/cost/memory_traffic.h"
#include "meshard/hlo/executions.h"

namespace meshard {

void HloCost::add(const HloCost& other, double times) {
  for (const auto& [type, count] : other.operations) {
    OperationCount& to = operations[type];
    to.matrix += times * count.matrix;
    to.other += times * count.other;
    to.transcendentals += times * count.transcendentals;
  }
  memory_bytes += times * other.memory_bytes;
}

double HloCost::matrix_flops() const {
  double sum = 0;
  for (const auto& each : operations) sum += each.second.matrix;
  return sum;
}

double HloCost::flops() const {
  double sum = 0;
  for (const auto& each : operations) sum += each.second.matrix + each.second.other;
  return sum;
}

double HloCost::transcendentals() const {
  double sum = 0;
  for (const auto& each : operations) sum += each.second.transcendentals;
  return sum;
}

ModuleCost::ModuleCost(const Executions& executions, const std::vector<CustomCall>& custom_calls)
    : executions_(&executions) {
  std::unordered_map<const HloInstruction*, const CustomCall*> with_cost;
  for (const CustomCall& call : custom_calls)
    if (call.cost) with_cost.emplace(call.instruction, &call);
  const std::vector<ReachedComputation>& reached = executions.calls().callers_first();
  for (auto each = reached.rbegin(); each != reached.rend(); ++each) {
    const InstructionIndex& in = *each->index;
    const ComputationRuns& runs = *executions.find(in.computation().id);
    HloCost sum;
    for (const HloInstruction& one : in.computation().instructions) {
      HloCost cost = cost_of(in, one, runs.fused || runs.applied);
      if (auto call = with_cost.find(&one); call != with_cost.end())
        add_custom_call(in, *call->second, cost);
      sum.add(cost);
      if (cost != HloCost()) of_instruction_.emplace(&one, std::move(cost));
      if (one.opcode == "while" && !executions.trip_count(one)) loops_known_ = false;
    }
    of_computation_.emplace(in.computation().id, std::move(sum));
  }
}

void ModuleCost::add_custom_call(const InstructionIndex& in, const CustomCall& call,
                                 HloCost& cost) const {
  if (call.cost->flops > 0 || call.cost->transcendentals > 0)
    cost.operations[computed_type(in, *call.instruction)] = {
        .matrix = call.cost->flops, .transcendentals = call.cost->transcendentals};
  if (!call.cost->memory_bytes) return;
  double all = static_cast<double>(call.operand_bytes) + static_cast<double>(call.result_bytes);
  bool stated = call.source == CustomCallSource::kStated;
  double on_chip = stated ? std::max(0.0, all - cost.memory_bytes) : 0;
  cost.memory_bytes = std::max(stated ? cost.memory_bytes : 0, *call.cost->memory_bytes - on_chip);
}

// The cost of an instruction's call; zero if the module lacks the called computation.
HloCost ModuleCost::inside(const HloInstruction& one, std::size_t call) const {
  auto found = of_computation_.find(one.called_computations[call]);
  return found == of_computation_.end() ? HloCost() : found->second;
}

HloCost ModuleCost::cost_of(const InstructionIndex& in, const HloInstruction& one,
                            bool fused) const {
  HloCost cost;
  OperationCount own = operations_of(in, one);
  if (own != OperationCount()) cost.operations[computed_type(in, one)] = own;
  if (!fused) cost.memory_bytes = memory_traffic(executions_->module(), in, one);
  if (one.opcode == "async-done" || one.opcode == "async-update") return cost;
  HloCost dearest;
  for (std::size_t n = 0; n < one.called_computations.size(); ++n) {
    HloCost call = inside(one, n);
    switch (call_kind(one, n)) {
      case CallKind::kLoopBody:
        cost.add(call, static_cast<double>(executions_->trip_count(one).value_or(1)));
        break;
      case CallKind::kLoopCondition:
        cost.add(call, static_cast<double>(executions_->trip_count(one).value_or(0) + 1));
        break;
      case CallKind::kBranch:
        if (call.flops() + call.memory_bytes >= dearest.flops() + dearest.memory_bytes)
          dearest = std::move(call);
        break;
      case CallKind::kApplied: cost.add(call, applications_of(in, one)); break;
      default: cost.add(call); break;
    }
  }
  cost.add(dearest);
  return cost;
}

const HloCost& ModuleCost::of(const HloInstruction& one) const {
  static const HloCost kNothing;
  auto found = of_instruction_.find(&one);
  return found == of_instruction_.end() ? kNothing : found->second;
}

const HloCost& ModuleCost::total() const {
  return of_computation_.at(executions_->module().module().entry_id);
}

}  // namespace meshard
