// The non-template part of jit: what a call looks like, and the programs traced so far.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/rolling_advice.h"
#include "meshard/graph/tensor.h"

namespace meshard {

struct JitOptions {
  /// Names the module; shows in messages, dumps and profiles.
  std::string name = "main";
  /// Positions of arguments whose memory the results may reuse; they cannot be used after the call.
  std::vector<std::size_t> donate = {};
  /// How many programs it keeps; beyond them the one that was not called for longest is forgotten,
  /// and compiled again when it is called. At least 1.
  std::size_t most_programs = 256;
};

/// What a jitted function did so far. A function that is traced for the eighth time is worth advice
/// (set_advice_handler()), which gives the last reason.
struct JitStats {
  std::uint64_t calls = 0;
  std::uint64_t traces = 0;
  /// Why each trace after the first was needed, in comparison with the one before: `argument 0.w is
  /// f32[8,4], was f32[8,8]`; `argument 0.step is 7, was 6`. The last 100 of them.
  std::vector<std::string> reasons;
  /// Of the programs: equal layers in a row, which repeat() would record, and the compiler would
  /// see, once.
  std::vector<RollingAdvice> rolling;
};

namespace internal {

/// What can be done with a static value of one C++ type: a Static argument's or a nested number's.
struct StaticKind {
  bool (*equal)(const void* a, const void* b);
  /// A copy to keep.
  std::shared_ptr<const void> (*keep)(const void* value);
  /// For messages.
  std::string (*text)(const void* value);
  /// Equal for equal values.
  std::size_t (*hash)(const void* value);
};

/// A static value of a call. Lives for the call.
struct StaticValue {
  const void* value = nullptr;
  const StaticKind* kind = nullptr;
};

/// The arguments of one call, flattened. Lives for the call.
struct JitCall {
  /// Distinguishes calls with other C++ types.
  const void* types = nullptr;
  InlineVector<const Tensor*, 8> tensors;
  /// Lengths, keys, and which optionals are set.
  std::vector<std::uint64_t> form;
  /// Nested numbers and Statics.
  InlineVector<StaticValue, 4> statics;

  /// Equal for calls that the same program may serve; of the shardings it knows nothing.
  std::size_t hash() const;
};

/// What messages call the tensors and the static values of a call: `argument 0.w`.
struct JitPaths {
  std::vector<std::string> tensors, statics;
};

/// A C++ number given as an argument is traced: it becomes a tensor of rank 0, of the default dtype
/// of its kind.
/// @error invalid argument, naming the argument, if that dtype cannot hold the number.
Tensor number_argument(const Scalar& number, std::size_t position, SourceLocation where);

/// One traced and compiled program.
class JitEntry {
 public:
  const void* types = nullptr;
  std::vector<std::uint64_t> form;
  /// The values of the statics; their C++ types follow from `types`.
  std::vector<std::shared_ptr<const void>> statics;
  std::vector<TensorType> argument_types;
  /// The shardings that the arguments had, and those that the compiler then chose for the unmarked
  /// ones. A call matches if each argument has either.
  std::vector<std::optional<Sharding>> asked, chosen;
  std::shared_ptr<CompiledProgram> program;
  Graph graph;
  std::size_t num_results = 0;
  /// The function's result with undefined tensors; its type is known to the template that made it.
  std::shared_ptr<const void> prototype;

  bool matches(const JitCall& call) const;
  /// The number of the first static value that differs, or of none of them.
  /// @pre the same types and form
  std::size_t differing_static(const JitCall& call) const;
};

/// Records a function: fresh parameters with the types and shardings of `arguments`, and what
/// `tracer` makes of them.
/// @error a result has no value; what the function throws.
Graph trace_function(
    std::span<const Tensor* const> arguments,
    const std::function<std::vector<Tensor>(std::span<const Tensor> parameters)>& tracer,
    SourceLocation where);

/// The numbers of the parameters that belong to the donated arguments; argument `i` owns
/// `leaves[i]` of them.
/// @error invalid argument: there is no such argument.
std::vector<std::uint32_t> donated_parameters(const std::vector<std::size_t>& donate,
                                              const std::vector<std::size_t>& leaves,
                                              SourceLocation where);

/// The programs of one jitted function, found by hash. May be asked by several threads: a signature
/// is traced and compiled once, while those who ask for it wait and those who ask for others do
/// not.
class JitCache {
 public:
  JitCache(JitOptions options, SourceLocation where)
      : options_(std::move(options)), where_(where) {}

  /// Traces the function: fills `entry.graph`'s results from fresh parameters and sets the
  /// prototype.
  using Tracer =
      std::function<std::vector<Tensor>(std::span<const Tensor> parameters, JitEntry& entry)>;

  /// The entry for this call, traced and compiled if there is none. Argument `i` of the function
  /// owns `leaves[i]` tensors.
  /// @error failed precondition if the function, while it is traced, calls itself with the same
  /// signature
  std::shared_ptr<const JitEntry> find_or_trace(const JitCall& call,
                                                const std::vector<std::size_t>& leaves,
                                                const JitPaths& paths, const Tracer& tracer);
  /// Null if no entry matches.
  std::shared_ptr<const JitEntry> find(const JitCall& call);

  JitStats stats() const;
  /// All programs that it keeps, oldest first.
  std::vector<std::shared_ptr<CompiledProgram>> programs() const;
  SourceLocation where() const { return where_; }
  const JitOptions& options() const { return options_; }

 private:
  struct Kept {
    std::shared_ptr<const JitEntry> entry;
    std::uint64_t number = 0;     // in the order in which they were made
    std::uint64_t last_call = 0;  // number of the call
  };
  using Table = std::unordered_multimap<std::size_t, Kept>;
  // A signature that some thread traces and compiles.
  class Making;

  std::vector<const Kept*> oldest_first() const;
  Kept* find_locked(const JitCall& call);
  std::shared_ptr<JitEntry> signature_of(const JitCall& call) const;
  void make(JitEntry& entry, const JitCall& call, const std::vector<std::size_t>& leaves,
            const JitPaths& paths, const Tracer& tracer) const;
  std::string why_not(const JitEntry& entry, const JitCall& call, const JitPaths& paths) const;
  void add_entry(std::shared_ptr<const JitEntry> entry, const JitCall& call, const JitPaths& paths);

  JitOptions options_;
  SourceLocation where_;
  mutable std::mutex mutex_;  // never held while a function is traced or compiled
  std::condition_variable made_;
  Table entries_;
  Kept* latest_ = nullptr;  // of entries_: a training loop asks for the same one again and again
  std::shared_ptr<const JitEntry> newest_;
  std::vector<const Making*> making_;
  std::uint64_t num_made_ = 0;  // or given up
  mutable JitStats stats_;
  mutable std::uint64_t advised_ = 0;  // entries that stats_.rolling was made from
};

}  // namespace internal
}  // namespace meshard
