// The cache of the compiled programs of a jitted function.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/advice.h"
#include "meshard/base/single_flight.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/storage.h"
#include "meshard/trace/jit_call.h"

namespace meshard::internal {

/// One traced and compiled program, and the signature of the calls that it serves.
class JitEntry {
 public:
  const void* types = nullptr;
  std::vector<std::uint64_t> form;
  /// The values of the statics; their C++ types follow from `types`.
  std::vector<std::shared_ptr<const void>> statics;
  std::vector<TensorType> argument_types;
  /// The shardings of the arguments at tracing, and the same with those that the compiler chose for
  /// unmarked arguments. A call matches if each argument has one or the other.
  std::vector<std::optional<Sharding>> asked, chosen;
  /// For each argument, the type and sharding of the last stored array that matched; at first those
  /// that the program reads, of which its results have copies. A copy matches without a comparison.
  /// Guarded by the cache's lock.
  mutable std::vector<std::optional<ShardedType>> matched;
  std::shared_ptr<CompiledProgram> program;
  std::size_t num_results = 0;
  /// The function's result with undefined tensors; its type is known to the template that made it.
  std::shared_ptr<const void> prototype;

  bool matches(const JitCall& call) const;
  /// What differs: `argument 0 is f32[8,4], was f32[8,8]`. Empty if matches().
  std::vector<std::string> differences(const JitCall& call, const JitPaths& paths) const;
  /// Whether the call can be compared argument by argument.
  bool has_form_of(const JitCall& call) const;
};

/// The programs of one jitted function. May be used from several threads: each signature is traced
/// and compiled once (base/single_flight.h).
class JitCache {
 public:
  JitCache(JitOptions options, SourceLocation where);

  /// The entry for this call, traced and compiled if there is none.
  /// @error failed precondition: the function calls itself with the same signature while it is
  /// traced
  std::shared_ptr<const JitEntry> find_or_trace(const JitCall& call, const JitFunction& function);
  /// The entry for this call; null if none matches.
  std::shared_ptr<const JitEntry> find(const JitCall& call);

  /// Records the function for this call without making a program, to repeat the checks of
  /// recording.
  /// @error errors of the function
  void record_again(const JitCall& call, const JitFunction& function) const;

  JitStats stats() const;
  /// All programs in the cache, oldest first.
  std::vector<std::shared_ptr<CompiledProgram>> programs() const;
  SourceLocation where() const { return where_; }
  const JitOptions& options() const { return options_; }

 private:
  std::shared_ptr<JitEntry> signature_of(const JitCall& call) const;
  Graph recorded(const JitCall& call, const JitFunction& function,
                 std::shared_ptr<const void>& prototype) const;
  void make(JitEntry& entry, const JitCall& call, const JitPaths& paths,
            const JitFunction& function) const;
  // Why the call matches none of the earlier signatures: all differences from the nearest one.
  std::string why_not(const JitCall& call, const JitPaths& paths) const;
  // Updates the statistics. Returns advice if there were many traces.
  std::optional<Advice> count_trace(std::shared_ptr<const JitEntry> entry, const JitCall& call,
                                    const JitPaths& paths);

  JitOptions options_;
  SourceLocation where_;
  SingleFlight<JitEntry> entries_;
  mutable std::mutex stats_mutex_;  // guards what follows; may be held while entries_ is locked
  std::shared_ptr<const JitEntry> newest_;
  mutable JitStats stats_;
  mutable std::uint64_t advised_ = 0;  // number of entries that stats_.rolling covers
};

}  // namespace meshard::internal
