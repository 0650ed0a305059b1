// How often each instruction of a compiled module runs during one run of the program.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/calls.h"

namespace meshard {

/// How often a computation's instructions run, and in which context.
struct ComputationRuns {
  /// Executions in one run of the program: the caller's executions summed over all calls,
  /// multiplied by the trip count for loops. A loop's condition runs once more than its body.
  /// Branches count as always taken. A computation applied to elements counts once for each
  /// execution of the instruction that applies it. Saturates at 2^52.
  std::int64_t executions = 1;
  /// False if an enclosing loop's trip count is unknown; such a loop counts as one iteration.
  bool known = true;
  /// Number of enclosing loops, for the most deeply nested call.
  int loop_depth = 0;
  /// True if every call is inside a conditional branch.
  bool conditional = false;
  /// True if it is the body of a fusion, or called from one.
  bool fused = false;
  /// True if every call applies it, or its caller, to elements.
  bool applied = false;
};

/// Execution counts of a module's computations. Refers to the ModuleIndex.
class Executions {
 public:
  /// @error data loss if computations are cyclic or nested too deeply
  static Result<Executions> of(const ModuleIndex& module);

  const ModuleIndex& module() const { return *module_; }
  const Calls& calls() const { return calls_; }
  /// Null if the program does not reach the computation.
  const ComputationRuns* find(std::int64_t computation) const;
  /// The trip count of a `while`; none if unknown.
  std::optional<std::int64_t> trip_count(const HloInstruction& loop) const;

 private:
  Executions(const ModuleIndex& module, Calls calls);
  void count();
  const ModuleIndex* module_;
  Calls calls_;
  std::vector<ComputationRuns> runs_;  // in the order of calls_.callers_first()
  std::unordered_map<const HloInstruction*, std::int64_t> trip_counts_;
};

}  // namespace meshard
