// Recording: turns an op call into a node. Only ops call record(), not users.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>

#include "meshard/graph/node.h"
#include "meshard/graph/tensor.h"

namespace meshard {

class Attributes;
class BodyScope;
class ForbidCollectives;
struct ManualAxes;
struct OpDef;

namespace internal {

/// The recording state of a thread.
struct Recorder {
  /// The trace that new nodes belong to; 0 for lazy values.
  std::uint64_t trace = 0;
  /// Above 0 while a function that will be differentiated is being recorded.
  std::uint32_t keep_operands = 0;
  /// The user's line while a composite op calls other ops.
  const SourceLocation* outer = nullptr;
  /// The manual axes of the function that is being recorded; nullptr outside of one.
  const ManualAxes* manual = nullptr;
  /// The body that is being recorded (body.h); nullptr outside of one.
  BodyScope* body = nullptr;
  /// The innermost scope that forbids collectives (forbid_collectives.h); nullptr outside of all.
  const ForbidCollectives* forbidden = nullptr;
};

inline constinit thread_local Recorder current_recorder;
inline Recorder& recorder() { return current_recorder; }

/// Like SourceScope, but overrides enclosing scopes: vjp nodes inherit the line of the node that
/// they differentiate.
class InheritSource {
 public:
  explicit InheritSource(const SourceLocation& where) : where_(where), before_(recorder().outer) {
    if (where.known()) recorder().outer = &where_;
  }
  ~InheritSource() { recorder().outer = before_; }
  InheritSource(const InheritSource&) = delete;
  InheritSource& operator=(const InheritSource&) = delete;

 private:
  SourceLocation where_;
  const SourceLocation* before_;
};

/// While alive, new nodes keep their operands after they are computed, so that they can be
/// differentiated.
class KeepOperandsScope {
 public:
  KeepOperandsScope() { ++recorder().keep_operands; }
  ~KeepOperandsScope() { --recorder().keep_operands; }
  KeepOperandsScope(const KeepOperandsScope&) = delete;
  KeepOperandsScope& operator=(const KeepOperandsScope&) = delete;
};

/// While alive, this thread records a function that runs inside manual axes.
class ManualScope {
 public:
  /// @pre `manual` outlives the scope.
  explicit ManualScope(const ManualAxes& manual) : before_(recorder().manual) {
    recorder().manual = &manual;
  }
  ~ManualScope() { recorder().manual = before_; }
  ManualScope(const ManualScope&) = delete;
  ManualScope& operator=(const ManualScope&) = delete;

 private:
  const ManualAxes* before_;
};

/// A new, unique trace number.
std::uint64_t next_trace();

/// While alive, this thread records into a new trace.
class TraceScope {
 public:
  TraceScope();
  ~TraceScope() { recorder() = before_; }
  std::uint64_t trace() const { return trace_; }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Recorder before_;
  std::uint64_t trace_;
};

}  // namespace internal

/// While alive, every new node of this thread has the source line `where`. Composites use it to
/// pass the user's line on. The outermost scope wins.
class SourceScope {
 public:
  explicit SourceScope(const SourceLocation& where)
      : where_(where), before_(internal::recorder().outer) {
    if (!before_ && where.known()) internal::recorder().outer = &where_;
  }
  ~SourceScope() { internal::recorder().outer = before_; }
  SourceScope(const SourceScope&) = delete;
  SourceScope& operator=(const SourceScope&) = delete;

 private:
  SourceLocation where_;
  const SourceLocation* before_;
};

/// True while this thread records into a trace (inside jit).
inline bool tracing() { return internal::recorder().trace != 0; }

/// True if calls must only be recorded: inside a trace or a function that is being differentiated.
/// There, a value that is placed or moved would become a new leaf.
inline bool only_recording() { return tracing() || internal::recorder().keep_operands != 0; }

/// The user's line for a node recorded now.
inline const SourceLocation& effective_source(const SourceLocation& where) {
  return internal::recorder().outer ? *internal::recorder().outer : where;
}

/// Records one call of `op`; OpDef::infer computes the result types.
/// @error errors of infer; invalid argument for an undefined operand; errors of annotate_results,
/// for operands with annotations.
Tensor record(const OpDef& op, std::unique_ptr<const Attributes> attributes,
              std::span<const Tensor* const> operands, SourceLocation where);
Tensor record(const OpDef& op, std::unique_ptr<const Attributes> attributes,
              std::initializer_list<const Tensor*> operands, SourceLocation where);

/// Records a call with a single result of known type. The fast path of element-wise
/// ops.
/// @pre operands are defined, and `type` is what OpDef::infer would return.
Tensor record_typed(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                    std::initializer_list<const Tensor*> operands, const TensorType& type,
                    SourceLocation where);

/// Records a call outside of traces with results of known types, of operands
/// without annotations. Returns its first result.
/// @pre `types` are what OpDef::infer would return, and this thread records no trace and no body
Value record_known(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                   std::span<const Value> operands, std::span<const TensorType> types,
                   SourceLocation where);

// Detects a growing chain of recorded nodes whose values are never read, and gives advice.

/// The chain length at which a chain is checked. A power of two. A longer chain is checked each
/// time its length has doubled, so that all checks together take time proportional to its length.
inline constexpr std::uint32_t kLongChain = 8192;

namespace internal {
/// Advises to sync or jit if at least kLongChain nodes must still be computed for `value`.
void advise_on_chain(const Value& value);
}  // namespace internal

/// Called for each lazily recorded node. Costs one comparison.
inline void watch_chain(const Value& value) {
  std::uint32_t depth = value->pending_depth();
  if (depth >= kLongChain && (depth & (depth - 1)) == 0) [[unlikely]]
    internal::advise_on_chain(value);
}

// Calls of functions that consist of other calls: layers, optimizers.

/// Like SourceScope, and adds the called function of the library: `model.cc:40, in nn::linear`.
/// The outermost one counts.
class CallScope {
 public:
  /// @param function `in nn::linear`; a literal.
  CallScope(const SourceLocation& where, const char* function)
      : scope_(with_name(effective_source(where), function)) {}

 private:
  static SourceLocation with_name(SourceLocation place, const char* function) {
    if (!std::string_view(place.function).starts_with("in ")) place.function = function;
    return place;
  }
  internal::InheritSource scope_;
};

}  // namespace meshard
