#include "meshard/hlo/module_index.h"

namespace meshard {

InstructionIndex::InstructionIndex(const HloComputation& computation) : computation_(&computation) {
  position_.reserve(computation.instructions.size());
  for (std::size_t i = 0; i < computation.instructions.size(); ++i)
    position_.emplace(computation.instructions[i].id, i);
}

const HloInstruction* InstructionIndex::find(std::int64_t id) const {
  auto found = position_.find(id);
  return found == position_.end() ? nullptr : &computation_->instructions[found->second];
}

const HloInstruction* InstructionIndex::operand(const HloInstruction& instruction,
                                                std::size_t number) const {
  return number < instruction.operands.size() ? find(instruction.operands[number]) : nullptr;
}

std::vector<const HloInstruction*> InstructionIndex::operands(
    const HloInstruction& instruction) const {
  std::vector<const HloInstruction*> found;
  for (std::int64_t id : instruction.operands)
    if (const HloInstruction* operand = find(id)) found.push_back(operand);
  return found;
}

std::vector<const HloInstruction*> InstructionIndex::users(
    const HloInstruction& instruction) const {
  const auto& all = computation_->instructions;
  if (users_.empty()) {
    users_.resize(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::int64_t id : all[i].operands)
        if (auto found = position_.find(id); found != position_.end())
          users_[found->second].push_back(i);
  }
  std::vector<const HloInstruction*> found;
  if (auto own = position_.find(instruction.id); own != position_.end())
    for (std::size_t i : users_[own->second]) found.push_back(&all[i]);
  return found;
}

std::vector<const HloInstruction*> InstructionIndex::in_run_order() const {
  const auto& all = computation_->instructions;
  std::vector<const HloInstruction*> order;
  std::vector<bool> seen(all.size(), false);
  for (std::int64_t id : computation_->schedule) {
    auto found = position_.find(id);
    if (found == position_.end() || seen[found->second]) continue;
    seen[found->second] = true;
    order.push_back(&all[found->second]);
  }
  if (order.size() == all.size()) return order;
  order.clear();
  for (const HloInstruction& each : all) order.push_back(&each);
  return order;
}

ModuleIndex::ModuleIndex(const HloModule& module) : module_(&module) {
  computations_.reserve(module.computations.size());
  for (const HloComputation& each : module.computations) {
    auto& index = computations_[each.id];
    if (!index) index = std::make_unique<const InstructionIndex>(each);
  }
}

const InstructionIndex* ModuleIndex::find(std::int64_t computation) const {
  auto found = computations_.find(computation);
  return found == computations_.end() ? nullptr : found->second.get();
}

const InstructionIndex* ModuleIndex::called(const HloInstruction& instruction,
                                            std::size_t number) const {
  return number < instruction.called_computations.size()
             ? find(instruction.called_computations[number])
             : nullptr;
}

}  // namespace meshard
