// Which computations of a compiled module run, and who calls them.
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
  kCall,           ///< a function, an asynchronous instruction, what a custom call names
  kLoopBody,       ///< of a `while`
  kLoopCondition,  ///< of a `while`
  kBranch,         ///< of a `conditional`
  kFusion,         ///< what a fusion does at once
  kApplied,        ///< on elements: the sum of a reduction, the order of a sort
};

/// The kind of an instruction's call number `number`. A `while` names its body first.
CallKind call_kind(const pjrt::HloInstruction& instruction, std::size_t number);

/// One computation that the program reaches.
struct ReachedComputation {
  const InstructionIndex* index = nullptr;
  /// Of its first call.
  CallKind kind = CallKind::kEntry;
  /// The first call; null of the entry.
  const InstructionIndex* caller = nullptr;
  const pjrt::HloInstruction* call = nullptr;
  /// Instructions that call it. Above 1 the computation is shared.
  int num_calls = 0;
};

/// The computations that running a module can reach, each once. The end of an asynchronous
/// instruction names its computation again, which is no further call.
class Calls {
 public:
  /// @error data loss if computations call one another in a circle, or more than 256 deep
  static Result<Calls> of(const ModuleIndex& module);

  /// Callers stand before what they call; the entry is the first.
  const std::vector<ReachedComputation>& callers_first() const { return reached_; }
  /// Null if the program does not reach it.
  const ReachedComputation* find(std::int64_t computation) const;
  /// Its place in callers_first().
  /// @pre it is reached
  std::size_t position(std::int64_t computation) const { return position_.at(computation); }

 private:
  std::vector<ReachedComputation> reached_;
  std::unordered_map<std::int64_t, std::size_t> position_;
};

}  // namespace meshard
