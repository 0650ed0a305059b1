// Looks up the computations and instructions of a compiled module by id.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "meshard/hlo/module.h"

namespace meshard {

/// A view of one computation for looking up instructions by id, and their users.
class InstructionIndex {
 public:
  /// @pre the computation outlives the index
  explicit InstructionIndex(const HloComputation& computation);

  const HloComputation& computation() const { return *computation_; }
  /// The instruction with this id, or null.
  const HloInstruction* find(std::int64_t id) const;
  /// Operand `number` of an instruction, or null.
  const HloInstruction* operand(const HloInstruction& instruction, std::size_t number) const;
  std::vector<const HloInstruction*> operands(const HloInstruction& instruction) const;
  /// The instructions that use the result, in module order.
  std::vector<const HloInstruction*> users(const HloInstruction& instruction) const;
  /// The computation's result, or null.
  const HloInstruction* root() const { return find(computation_->root); }
  /// The instructions in execution order: the schedule's if it lists each exactly once, else the
  /// module's.
  std::vector<const HloInstruction*> in_run_order() const;

 private:
  const HloComputation* computation_;
  std::unordered_map<std::int64_t, std::size_t> position_;
  // Positions of users by position; built lazily. Not thread-safe.
  mutable std::vector<std::vector<std::size_t>> users_;
};

/// A view of a module for looking up computations by id.
class ModuleIndex {
 public:
  /// @pre the module outlives the index
  explicit ModuleIndex(const HloModule& module);

  const HloModule& module() const { return *module_; }
  /// The computation with this id, or null. If ids repeat, the first one.
  const InstructionIndex* find(std::int64_t computation) const;
  /// @pre the module has an entry computation; HloModule::from_bytes checks this
  const InstructionIndex& entry() const { return *find(module_->entry_id); }
  /// The computation of an instruction's call number `number`, or null.
  const InstructionIndex* called(const HloInstruction& instruction, std::size_t number = 0) const;

 private:
  const HloModule* module_;
  std::unordered_map<std::int64_t, std::unique_ptr<const InstructionIndex>> computations_;
};

}  // namespace meshard
