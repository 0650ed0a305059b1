// Cost of one run of a compiled module on one device, including loop iterations.
#pragma once
#include <map>
#include <unordered_map>
#include <vector>

#include "meshard/explain/cost/custom_calls.h"
#include "meshard/explain/cost/flops.h"
#include "meshard/hlo/module.h"

namespace meshard {

class Executions;

/// Value type: the cost of a computation on one device.
struct HloCost {
  /// The number of operations, by the element type of the arithmetic.
  std::map<pjrt::ElementType, OperationCount> operations;
  /// Bytes read from and written to main memory.
  double memory_bytes = 0;

  /// Adds another cost `times` times.
  void add(const HloCost& other, double times = 1);
  double matrix_flops() const;
  double flops() const;  ///< matrix + other
  double transcendentals() const;
  friend bool operator==(const HloCost&, const HloCost&) = default;
};

/// Costs of a module's instructions and computations. Refers to the Executions.
class ModuleCost {
 public:
  /// @param custom_calls those with a cost add it: their flops count as a matrix product of the
  /// operand's type. Bytes of operands and results in on-chip memory are taken off a stated
  /// traffic, because copying them there counts already. Used only by the constructor.
  explicit ModuleCost(const Executions& executions,
                      const std::vector<CustomCall>& custom_calls = {});

  /// The cost of one execution of an instruction, including what it calls: all iterations of a
  /// loop, the most expensive branch of a conditional. A loop with unknown trip count counts as one
  /// iteration.
  const HloCost& of(const HloInstruction& one) const;
  /// The cost of one run of the program.
  const HloCost& total() const;
  /// False if the program has a loop with unknown trip count.
  bool loops_known() const { return loops_known_; }

 private:
  HloCost inside(const HloInstruction& one, std::size_t call) const;
  HloCost cost_of(const InstructionIndex& in, const HloInstruction& one, bool fused) const;
  void add_custom_call(const InstructionIndex& in, const CustomCall& call, HloCost& cost) const;
  const Executions* executions_;
  std::unordered_map<const HloInstruction*, HloCost> of_instruction_;
  std::unordered_map<std::int64_t, HloCost> of_computation_;
  bool loops_known_ = true;
};

}  // namespace meshard
