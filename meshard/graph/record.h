// Recording: how an op call becomes a node. Ops call record(); users never do.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "meshard/graph/attributes.h"
#include "meshard/graph/node.h"
#include "meshard/graph/tensor.h"

namespace meshard {

struct ManualAxes;
struct OpDef;
class BodyScope;

/// What the ops of this thread record into.
struct Recorder {
  /// The trace that new nodes belong to; 0: lazy values.
  std::uint64_t trace = 0;
  /// Above 0 while a function is recorded that will be differentiated.
  std::uint32_t keep_operands = 0;
  /// The user's line, while a composite op calls others.
  const SourceLocation* outer = nullptr;
  /// The manual axes of the function that is being recorded; nullptr outside.
  const ManualAxes* manual = nullptr;
  /// The body that is being recorded (body.h); nullptr outside of one.
  BodyScope* body = nullptr;
};

namespace internal {
inline constinit thread_local Recorder current_recorder;
}
inline Recorder& recorder() { return internal::current_recorder; }

/// While alive, every node of this thread carries `where`: composites push the user's line. The
/// outermost scope wins.
class SourceScope {
 public:
  explicit SourceScope(const SourceLocation& where) : where_(where), before_(recorder().outer) {
    if (!before_ && where.known()) recorder().outer = &where_;
  }
  ~SourceScope() { recorder().outer = before_; }
  SourceScope(const SourceScope&) = delete;
  SourceScope& operator=(const SourceScope&) = delete;

 private:
  SourceLocation where_;
  const SourceLocation* before_;
};

/// While alive, every node of this thread carries `where`, whatever scope is around: vjp nodes
/// inherit the line of the node they differentiate.
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

/// While alive, nodes keep their operands even after they are computed, so that they can be
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

/// A number for a trace that no other has.
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

/// True while this thread records into a trace (inside jit).
inline bool tracing() { return recorder().trace != 0; }

/// True while a call can only be recorded: inside a trace, and in a function that is being
/// differentiated, where a value that is placed or moved would be a new leaf.
inline bool only_recording() { return tracing() || recorder().keep_operands != 0; }

/// The user's line for a node recorded now.
inline const SourceLocation& effective_source(const SourceLocation& where) {
  return recorder().outer ? *recorder().outer : where;
}

/// Records one call of `op`; result types come from OpDef::infer.
/// @error what infer throws; invalid argument for an undefined operand; what annotate_results
/// throws, for operands with annotations.
Tensor record(const OpDef& op, std::unique_ptr<const Attributes> attributes,
              std::span<const Tensor* const> operands, SourceLocation where);
inline Tensor record(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                     std::initializer_list<const Tensor*> operands, SourceLocation where) {
  return record(op, std::move(attributes), std::span(operands.begin(), operands.size()), where);
}

/// Records a call whose one result type the caller knows already; the fast path of element-wise
/// ops.
/// @pre operands are defined and `type` is what OpDef::infer would say.
Tensor record_typed(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                    std::initializer_list<const Tensor*> operands, const TensorType& type,
                    SourceLocation where);

}  // namespace meshard
