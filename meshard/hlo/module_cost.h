// What running a compiled module once costs a device, loops counted.
#pragma once
#include <map>
#include <unordered_map>

#include "meshard/hlo/executions.h"
#include "meshard/hlo/flops.h"

namespace meshard {

/// A value: what something costs one device.
struct HloCost {
  /// By the type that is computed in.
  std::map<pjrt::ElementType, OperationCount> operations;
  /// Read from and written to main memory.
  double memory_bytes = 0;

  /// Adds `times` that of another.
  void add(const HloCost& other, double times = 1);
  double matrix_flops() const;
  double flops() const;  ///< matrix and other
  double transcendentals() const;
  friend bool operator==(const HloCost&, const HloCost&) = default;
};

/// Costs of the instructions and computations of a module. Refers to the executions.
class ModuleCost {
 public:
  explicit ModuleCost(const Executions& executions);

  /// Of one instruction each time that it runs, with what it calls: a loop's iterations, the
  /// dearest branch of a conditional. A loop of unknown length counts once.
  const HloCost& of(const pjrt::HloInstruction& one) const;
  /// Of one run of the program.
  const HloCost& total() const;
  /// False if the program has a loop of unknown length.
  bool loops_known() const { return loops_known_; }

 private:
  HloCost inside(const pjrt::HloInstruction& one, std::size_t call) const;
  HloCost cost_of(const InstructionIndex& in, const pjrt::HloInstruction& one, bool fused) const;
  const Executions* executions_;
  std::unordered_map<const pjrt::HloInstruction*, HloCost> of_instruction_;
  std::unordered_map<std::int64_t, HloCost> of_computation_;
  bool loops_known_ = true;
};

}  // namespace meshard
