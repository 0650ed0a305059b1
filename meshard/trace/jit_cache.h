// The non-template part of jit: what a call looks like, and the programs traced so far.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
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
};

/// What a jitted function did so far.
struct JitStats {
  std::uint64_t calls = 0;
  std::uint64_t traces = 0;
  /// Why each trace after the first was needed: `argument 0.w is f32[8,4], was f32[8,8]`.
  std::vector<std::string> reasons;
  /// Of the programs: equal layers in a row, which repeat() would record, and the compiler would
  /// see, once.
  std::vector<RollingAdvice> rolling;
};

namespace internal {

/// The arguments of one call, flattened. Lives for the call.
struct JitCall {
  /// Distinguishes calls with other C++ types.
  const void* types = nullptr;
  InlineVector<const Tensor*, 8> tensors;
  /// Lengths, keys, and the values of nested numbers and Statics, as bytes.
  std::vector<std::uint64_t> form;
  std::string statics;
};

/// One traced and compiled program.
class JitEntry {
 public:
  const void* types = nullptr;
  std::vector<std::uint64_t> form;
  std::string statics;
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

/// The programs of one jitted function. Locked; a signature is traced once even if two threads ask.
class JitCache {
 public:
  JitCache(JitOptions options, SourceLocation where)
      : options_(std::move(options)), where_(where) {}

  /// Traces the function: fills `entry.graph`'s results from fresh parameters and sets the
  /// prototype.
  using Tracer =
      std::function<std::vector<Tensor>(std::span<const Tensor> parameters, JitEntry& entry)>;

  /// The entry for this call, traced and compiled if there is none. Argument `i` of the function
  /// owns `leaves[i]` tensors; `path(i)` names tensor i for messages.
  const JitEntry& find_or_trace(const JitCall& call, const std::vector<std::size_t>& leaves,
                                const std::function<std::string(std::size_t)>& path,
                                const Tracer& tracer);
  /// nullptr if no entry matches.
  const JitEntry* find(const JitCall& call);

  JitStats stats() const;
  /// All programs, oldest first.
  std::vector<std::shared_ptr<CompiledProgram>> programs() const;
  SourceLocation where() const { return where_; }
  const JitOptions& options() const { return options_; }

 private:
  const JitEntry* find_locked(const JitCall& call) const;
  std::string why_not(const JitEntry& entry, const JitCall& call,
                      const std::function<std::string(std::size_t)>& path) const;

  JitOptions options_;
  SourceLocation where_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<const JitEntry>> entries_;
  mutable JitStats stats_;
  mutable std::size_t advised_ = 0;  // entries that stats_.rolling was made from
};

}  // namespace internal
}  // namespace meshard
