// Follows values through a compiled module: through fusions, loops, branches and calls.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/hlo/executions.h"

namespace meshard {

/// An instruction and the computation that contains it.
struct LocatedInstruction {
  const InstructionIndex* index = nullptr;
  const HloInstruction* instruction = nullptr;
  friend bool operator==(const LocatedInstruction&, const LocatedInstruction&) = default;
};

/// The receive of a send to another slice, or the send of a receive (TPU); null if there is none.
const HloInstruction* transfer_partner(const InstructionIndex& index, const HloInstruction& one);

/// Where a value comes from, if no operation computes it: only operations that move, convert, cut
/// or join data are followed back, and gathers and permutations. Constants are from nowhere.
struct ValueSources {
  /// The program's parameters that the value is taken from, sorted.
  std::vector<std::int64_t> parameters;
  /// The collectives that the value passed, nearest first.
  std::vector<LocatedInstruction> collectives;
  /// True if some part of the value is the result of an operation.
  bool computed = false;
};

/// Where a value goes.
struct ValueUses {
  /// The program's results that the value reaches, sorted.
  std::vector<std::int64_t> results;
  /// The operations that use the value and were not followed.
  std::vector<LocatedInstruction> consumers;
  /// The collectives that the value reached, nearest first.
  std::vector<LocatedInstruction> collectives;
};

/// Follows values of one module.
class ValueFlow {
 public:
  /// @pre the executions outlive this object
  explicit ValueFlow(const Executions& executions) : executions_(executions) {}

  /// The sources of an instruction's operand `number`.
  /// @param through_collectives false: the search ends at collectives. True: it goes on through
  /// gathers and permutations; reductions compute a value.
  /// @param through_arithmetic true: operations that act on each element separately are followed
  /// back too. Values that other operations compute then have parts of `parameters` as well.
  ValueSources sources(const LocatedInstruction& at, std::size_t number,
                       bool through_collectives = true, bool through_arithmetic = false) const;

  /// The uses of an instruction's result.
  /// @param element of a tuple; -1: all of the result
  /// @param through_arithmetic true: operations that act on each element separately are followed
  /// too, so that a gradient is followed through the optimizer
  /// @param through_collectives false: the search ends at collectives
  ValueUses uses(const LocatedInstruction& at, std::int64_t element, bool through_arithmetic,
                 bool through_collectives = true) const;

 private:
  const Executions& executions_;
};

}  // namespace meshard
