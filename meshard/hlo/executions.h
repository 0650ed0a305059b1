// Which computations of a compiled module run, what calls them, and how often.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/module.h"

namespace meshard {

/// How a computation is called.
enum class CallKind {
  kEntry,
  kCall,           ///< a function, an asynchronous instruction, or the target of a custom call
  kLoopBody,       ///< body of a `while`
  kLoopCondition,  ///< condition of a `while`
  kBranch,         ///< branch of a `conditional`
  kFusion,         ///< body of a fusion
  kApplied,        ///< applied to elements: the reducer of a reduction, the comparator of a sort
};

/// The kind of an instruction's call number `number`. Call 0 of a `while` is its body.
CallKind call_kind(const HloInstruction& instruction, std::size_t number);

/// A computation that the program reaches.
struct ReachedComputation {
  const InstructionIndex* index = nullptr;
  /// The kind of the first call.
  CallKind kind = CallKind::kEntry;
  /// The first call; null for the entry.
  const InstructionIndex* caller = nullptr;
  const HloInstruction* call = nullptr;
  /// Number of calls to it. If greater than 1, the computation is shared.
  int num_calls = 0;
};

/// The computations that are reachable when a module runs, each listed once. `async-update` and
/// `async-done` repeat the computation of their `async-start`; they do not count as calls.
class Calls {
 public:
  /// @error data loss if computations are cyclic or nested more than 256 deep
  static Result<Calls> of(const ModuleIndex& module);

  /// The computations, callers before callees; the entry is first.
  const std::vector<ReachedComputation>& callers_first() const { return reached_; }
  /// Null if the program does not reach the computation.
  const ReachedComputation* find(std::int64_t computation) const;
  /// The computation's index in callers_first().
  /// @pre the computation is reached
  std::size_t position(std::int64_t computation) const { return position_.at(computation); }

 private:
  std::vector<ReachedComputation> reached_;
  std::unordered_map<std::int64_t, std::size_t> position_;
};

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

/// The number of iterations of a `while` each time it executes; none if unknown or infinite. Uses
/// the compiler's `known_trip_count` from the backend config if present (CPU and GPU compilers
/// write it). Otherwise the condition must compare a counter with a loop-invariant value, the body
/// must add a constant to the counter, and the counter's initial value must be constant; constants
/// are traced through tuples, copies, fusions, calls and enclosing loops.
std::optional<std::int64_t> trip_count(const ModuleIndex& module, const Calls& calls,
                                       const InstructionIndex& computation,
                                       const HloInstruction& loop);

}  // namespace meshard
