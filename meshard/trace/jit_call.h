// Calls of jitted functions, flattened, and the interface through which they are run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshard/base/function_ref.h"
#include "meshard/base/inline_vector.h"
#include "meshard/graph/tensor.h"
#include "meshard/graph/unrolled_layers.h"
#include "meshard/ops/rolling/rolling_advice.h"

namespace meshard {

// Options and statistics of jit().

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
  /// Keeps programs that took long to compile on disk, and looks for them there (disk_cache.h).
  /// Default: true. `false` for programs that no later process will need.
  bool keep_on_disk = true;
};

/// Statistics of a jitted function. The eighth trace produces advice (set_advice_handler()) that
/// gives the last reason.
struct JitStats {
  std::uint64_t calls = 0;
  std::uint64_t traces = 0;
  /// Why each trace after the first was needed, compared with the one before:
  /// `argument 0.w is f32[8,4], was f32[8,8]`; `argument 0.step is 7, was 6`. The last 100 reasons.
  std::vector<std::string> reasons;
  /// Runs of equal layers in the programs. With an nn::Layers or repeat(), each run would be
  /// recorded and compiled as one layer.
  std::vector<RollingAdvice> rolling;
  /// Layers of an nn::Layers that did not become one loop, and why.
  std::vector<UnrolledLayers> unrolled;
};

class CompiledProgram;

}  // namespace meshard

namespace meshard::internal {

class JitCache;

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
  // A call on the hot path needs no memory of its own.
  InlineVector<const Tensor*, 256> tensors;
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
  /// The number of tensors of each argument.
  std::vector<std::size_t> leaves;
  /// Which of the tensors are weakly typed numbers that the default dtype of their kind can hold.
  std::vector<std::size_t> numbers;
};

/// What a call returned.
struct JitResults {
  /// The function's result with undefined tensors; its type is known to the template that made it.
  std::shared_ptr<const void> prototype;
  InlineVector<Tensor, 256> tensors;
};

/// The function behind a call. Valid during the call.
struct JitFunction {
  /// Describes the arguments.
  FunctionRef<void(JitPaths& paths)> describe;
  /// Calls the function with `parameters`: returns the tensors of its result, and sets the
  /// prototype.
  FunctionRef<std::vector<Tensor>(std::span<const Tensor> parameters,
                                  std::shared_ptr<const void>& prototype)>
      trace;
};

/// A handle on the compiled programs of one jitted function. Copies share them. May be used from
/// several threads.
class JitPrograms {
 public:
  JitPrograms(JitOptions options, SourceLocation where);

  /// Runs the program for this call, traced and compiled if there is none.
  /// @error errors of the function, the compiler or the plugin; failed precondition: the function
  /// calls itself with the same signature while it is traced
  JitResults run(const JitCall& call, const JitFunction& function) const;

  JitStats stats() const;
  /// All programs in the cache, oldest first.
  std::vector<std::shared_ptr<CompiledProgram>> programs() const;
  SourceLocation where() const;
  const JitOptions& options() const;

 private:
  std::shared_ptr<JitCache> cache_;
};

/// True if a jitted function must be recorded in place: a compiled program would be a constant to
/// the derivative, and does not accept local values.
bool recorded_in_place();
/// Throws the error of an undefined tensor among the arguments of a call; `path` names it.
[[noreturn]] void fail_undefined_argument(const std::string& path, SourceLocation where);

}  // namespace meshard::internal
