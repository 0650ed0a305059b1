// The call graph of a compiled module: which computations run, and what calls them.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/module_index.h"

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

}  // namespace meshard
