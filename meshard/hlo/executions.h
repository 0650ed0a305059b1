// How often each instruction of a compiled module runs in one run of the program.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/calls.h"

namespace meshard {

/// How often the instructions of one computation run, and where it stands.
struct ComputationRuns {
  /// In one run of the program: the sum over its calls of the caller's executions, times the trip
  /// count of a loop. A loop's condition runs once more than its body. A branch counts as if it
  /// were taken each time. What is applied to elements counts as often as the instruction that
  /// applies it. Stays below 2^52.
  std::int64_t executions = 1;
  /// False if a trip count on the way is not known; that loop counts once.
  bool known = true;
  /// Loops around it, of the call with the most.
  int loop_depth = 0;
  /// Every call of it stands in a branch.
  bool conditional = false;
  /// It, or what calls it, is what a fusion does.
  bool fused = false;
  /// It is applied to elements.
  bool applied = false;
};

/// How often the computations of a module run. Refers to the index.
class Executions {
 public:
  /// @error data loss if computations call one another in a circle or too deep
  static Result<Executions> of(const ModuleIndex& module);

  const ModuleIndex& module() const { return *module_; }
  const Calls& calls() const { return calls_; }
  /// Null if the program does not reach the computation.
  const ComputationRuns* find(std::int64_t computation) const;
  /// Of a `while`; none if it is not known.
  std::optional<std::int64_t> trip_count(const pjrt::HloInstruction& loop) const;

 private:
  Executions(const ModuleIndex& module, Calls calls);
  void count();
  const ModuleIndex* module_;
  Calls calls_;
  std::vector<ComputationRuns> runs_;  // as calls_.callers_first()
  std::unordered_map<const pjrt::HloInstruction*, std::int64_t> trip_counts_;
};

}  // namespace meshard
