#include "meshard/graph/record.h"

#include <atomic>
#include <optional>
#include <vector>

#include "meshard/base/advice.h"
#include "meshard/base/cat.h"
#include "meshard/base/outer_line.h"
#include "meshard/graph/annotate.h"
#include "meshard/graph/body.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record_log.h"

namespace meshard {
namespace {
std::atomic<std::uint64_t> next_trace_number{1};

[[maybe_unused]] const bool errors_have_the_outer_line = [] {
  internal::set_outer_line([] { return internal::recorder().outer; });
  return true;
}();

// Returns true if an operand has annotations.
template <class Operands>
bool add_operands(Node* node, const Operands& operands) {
  bool annotated = false;
  for (const Tensor* operand : operands) {
    annotated |= operand->value()->annotations() != nullptr;
    node->add_operand(operand->value());
  }
  return annotated;
}

// The inner values of the operands in the body that is being recorded. Constructed before the node
// that uses them, because inside() may record nodes that must come first.
class InnerOperands {
 public:
  template <class Operands>
  InnerOperands(BodyScope& body, const Operands& operands) {
    for (const Tensor* operand : operands) inner_.emplace_back(body.inside(operand->value()));
    for (const Tensor& each : inner_) pointers_.push_back(&each);
  }
  std::span<const Tensor* const> pointers() const { return pointers_; }

 private:
  std::vector<Tensor> inner_;
  std::vector<const Tensor*> pointers_;
};

// Called before and after a node is recorded.
inline void before_recording(SourceLocation where) {
  if (internal::record_log.is_due() && internal::recorder().trace == 0) [[unlikely]]
    internal::run_ahead(where);
}
inline void recorded(const Value& value) {
  if (internal::recorder().trace != 0) return;
  internal::record_log.add(*value.node());
  watch_chain(value);
}

}  // namespace

std::uint64_t internal::next_trace() {
  return next_trace_number.fetch_add(1, std::memory_order_relaxed);
}

internal::TraceScope::TraceScope() : before_(internal::recorder()), trace_(internal::next_trace()) {
  internal::recorder() = internal::Recorder{.trace = trace_};
}

Tensor record(const OpDef& op, std::unique_ptr<const Attributes> attributes,
              std::span<const Tensor* const> operands, SourceLocation where) {
  where = effective_source(where);
  before_recording(where);
  OpCall call{
      .op = op, .attributes = attributes.get(), .operands = {}, .results = {}, .where = where};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]->defined()) call.fail("operand ", i, " (of ", op.operands, ") has no value");
    call.operands.push_back(&operands[i]->value().type());
  }
  ResultTypes results;
  op.infer(call, results);
  std::optional<InnerOperands> inner;
  if (internal::recorder().body)
    operands = inner.emplace(*internal::recorder().body, operands).pointers();
  Node* node = Node::make(op, std::move(attributes), internal::recorder().trace, where);
  Value value = Value::first_of(node);
  bool annotated = add_operands(node, operands);
  for (TensorType& type : results) node->add_output(std::move(type));
  if (annotated || op.annotate || internal::recorder().forbidden)
    node->annotate(annotate_results(*node));
  recorded(value);
  return Tensor(std::move(value));
}

Tensor record(const OpDef& op, std::unique_ptr<const Attributes> attributes,
              std::initializer_list<const Tensor*> operands, SourceLocation where) {
  return record(op, std::move(attributes), std::span(operands.begin(), operands.size()), where);
}

Tensor record_typed(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                    std::initializer_list<const Tensor*> operands, const TensorType& type,
                    SourceLocation where) {
  before_recording(where);
  std::optional<InnerOperands> inner;
  if (internal::recorder().body) [[unlikely]]
    inner.emplace(*internal::recorder().body, operands);
  Node* node =
      Node::make(op, std::move(attributes), internal::recorder().trace, effective_source(where));
  Value value = Value::first_of(node);
  bool annotated = inner ? add_operands(node, inner->pointers()) : add_operands(node, operands);
  node->add_output(type);
  if (annotated || internal::recorder().forbidden) [[unlikely]]
    node->annotate(annotate_results(*node));
  recorded(value);
  return Tensor(std::move(value));
}

Value record_known(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                   std::span<const Value> operands, std::span<const TensorType> types,
                   SourceLocation where) {
  before_recording(where);
  Node* node = Node::make(op, std::move(attributes), 0, where);
  Value value = Value::first_of(node);
  for (const Value& operand : operands) node->add_operand(operand);
  for (const TensorType& type : types) node->add_output(type);
  recorded(value);
  return value;
}

void internal::advise_on_chain(const Value& value) {
  Evaluator* counting = installed_evaluator();
  if (!counting) return;
  std::size_t pending = counting->count_pending(value);
  value->set_pending_depth(static_cast<std::uint32_t>(pending));
  if (pending < kLongChain) return;
  advise({"lazy.pending",
          cat("[lazy] the value recorded here depends on ", pending,
              " recorded operations that have not run: they are kept, and become one large program "
              "when the value is read. Call sync() once per iteration on the values that a loop "
              "carries, or jit the body of the loop"),
          value->where()});
}

}  // namespace meshard
