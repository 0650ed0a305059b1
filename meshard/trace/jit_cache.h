// The non-template part of jit: call signatures, and the cache of compiled programs.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/advice.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/rolling_advice.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// Options of jit().
struct JitOptions {
  /// The name of the module in messages, dumps and profiles. Default: "main".
  std::string name = "main";
  /// Positions of arguments whose memory the results may reuse. These arguments cannot be used
  /// after the call. Default: none.
  std::vector<std::size_t> donate = {};
  /// The maximum number of programs to keep, at least 1 (default: 256). Beyond it, the least
  /// recently called program is evicted, and compiled again when it is called.
  std::size_t most_programs = 256;
};

/// Statistics of a jitted function. The eighth trace produces advice (set_advice_handler()) that
/// gives the last reason.
struct JitStats {
  std::uint64_t calls = 0;
  std::uint64_t traces = 0;
  /// Why each trace after the first was needed, compared with the one before:
  /// `argument 0.w is f32[8,4], was f32[8,8]`; `argument 0.step is 7, was 6`. The last 100 reasons.
  std::vector<std::string> reasons;
  /// Runs of equal layers in the programs. With repeat(), each run would be recorded and compiled
  /// as one layer.
  std::vector<RollingAdvice> rolling;
};

namespace internal {

template <class Item>
class SingleFlight;  // base/single_flight.h, which needs headers that users need not compile

/// The operations on static values (Static arguments, nested numbers) of one C++ type.
struct StaticKind {
  bool (*equal)(const void* a, const void* b);
  /// Returns a copy to store.
  std::shared_ptr<const void> (*keep)(const void* value);
  /// For messages.
  std::string (*text)(const void* value);
  /// Equal for equal values.
  std::size_t (*hash)(const void* value);
};

/// A static value of a call. Valid during the call.
struct StaticValue {
  const void* value = nullptr;
  const StaticKind* kind = nullptr;
};

/// The arguments of one call, flattened. Valid during the call.
struct JitCall {
  /// Identifies the C++ types of the arguments.
  const void* types = nullptr;
  InlineVector<const Tensor*, 8> tensors;
  /// The form of the structures: lengths, keys, and which optionals are set.
  std::vector<std::uint64_t> form;
  /// Nested numbers and Statics.
  InlineVector<StaticValue, 4> statics;

  /// Equal for calls that the same program may serve. Does not include the shardings.
  std::size_t hash() const;
};

/// The names of the tensors and static values of a call in messages: `argument 0.w`.
struct JitPaths {
  std::vector<std::string> tensors, statics;
};

/// The tensor for a C++ number passed as an argument. It has rank 0 and the default dtype of its
/// kind, and is traced.
/// @error invalid argument, naming the argument, if that dtype cannot hold the number.
Tensor number_argument(const Scalar& number, std::size_t position, SourceLocation where);

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
  std::shared_ptr<CompiledProgram> program;
  std::size_t num_results = 0;
  /// The function's result with undefined tensors; its type is known to the template that made it.
  std::shared_ptr<const void> prototype;

  bool matches(const JitCall& call) const;
  /// The index of the first static value that differs, or statics.size() if none does.
  /// @pre the same types and form
  std::size_t differing_static(const JitCall& call) const;
};

/// Records what `tracer` does with fresh parameters that have the types and shardings of
/// `arguments`.
/// @error a result has no value; what the function throws.
Graph trace_function(
    std::span<const Tensor* const> arguments,
    const std::function<std::vector<Tensor>(std::span<const Tensor> parameters)>& tracer,
    SourceLocation where);

/// The indices of the parameters that belong to donated arguments. Argument `i` has `leaves[i]`
/// parameters.
/// @error invalid argument: `donate` names an argument that does not exist.
std::vector<std::uint32_t> donated_parameters(const std::vector<std::size_t>& donate,
                                              const std::vector<std::size_t>& leaves,
                                              SourceLocation where);

/// The programs of one jitted function. May be used from several threads: each signature is traced
/// and compiled once (base/single_flight.h).
class JitCache {
 public:
  JitCache(JitOptions options, SourceLocation where);
  ~JitCache();

  /// Calls the function with `parameters`: returns the tensors of its result, and sets
  /// entry.prototype.
  using Tracer =
      std::function<std::vector<Tensor>(std::span<const Tensor> parameters, JitEntry& entry)>;

  /// The entry for this call, traced and compiled if there is none. Argument `i` of the function
  /// has `leaves[i]` tensors.
  /// @error failed precondition: the function calls itself with the same signature while it is
  /// traced
  std::shared_ptr<const JitEntry> find_or_trace(const JitCall& call,
                                                const std::vector<std::size_t>& leaves,
                                                const JitPaths& paths, const Tracer& tracer);
  /// The entry for this call; null if none matches.
  std::shared_ptr<const JitEntry> find(const JitCall& call);

  JitStats stats() const;
  /// All programs in the cache, oldest first.
  std::vector<std::shared_ptr<CompiledProgram>> programs() const;
  SourceLocation where() const { return where_; }
  const JitOptions& options() const { return options_; }

 private:
  std::shared_ptr<JitEntry> signature_of(const JitCall& call) const;
  void make(JitEntry& entry, const JitCall& call, const std::vector<std::size_t>& leaves,
            const JitPaths& paths, const Tracer& tracer) const;
  std::string why_not(const JitEntry& entry, const JitCall& call, const JitPaths& paths) const;
  // Updates the statistics. Returns advice if there were many traces.
  std::optional<Advice> count_trace(std::shared_ptr<const JitEntry> entry, const JitCall& call,
                                    const JitPaths& paths);

  JitOptions options_;
  SourceLocation where_;
  std::unique_ptr<SingleFlight<JitEntry>> entries_;
  mutable std::mutex stats_mutex_;  // guards what follows; may be held while entries_ is locked
  std::shared_ptr<const JitEntry> newest_;
  mutable JitStats stats_;
  mutable std::uint64_t advised_ = 0;  // number of entries that stats_.rolling covers
};

}  // namespace internal
}  // namespace meshard
