#include "meshard/graph/annotate.h"

#include <unordered_set>
#include <vector>

#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/forbid_collectives.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"

namespace meshard {
namespace {

std::string describe_operand(const Node& node, std::size_t i) {
  const Value& operand = node.operands()[i];
  const ManualAxes* manual = manual_axes(operand);
  return cat("operand ", i, ", ", operand.type(), " made at ", operand->where(), ", is ",
             manual ? manual->to_string() : std::string("a full value"));
}

[[noreturn]] void fail_unlike(const Node& node, std::size_t local, std::size_t other) {
  const ManualAxes* unlike = manual_axes(node.operands()[other]);
  bool is_around = unlike && manual_axes(node.operands()[local])->is_inside(*unlike);
  throw Error(ErrorCode::kInvalidArgument,
              cat("[", node.op().name, "] ",
                  is_around ? "a value of an inner manual function is combined with a value of the "
                              "enclosing one: pass the latter to the inner manual() as an argument"
                  : unlike  ? "values inside different manual axes cannot be combined"
                            : "a value inside manual axes cannot be combined with a full value: "
                              "pass the full value to manual() as an argument"),
              node.where())
      .with_note(describe_operand(node, local))
      .with_note(describe_operand(node, other));
}

// The annotations that follow from the manual operands; null if no operand is local.
AnnotationsPtr meet_manual(const Node& node) {
  std::span<const Value> operands = node.operands();
  std::size_t deepest = 0;
  for (std::size_t i = 1; i < operands.size(); ++i)
    if (manual_depth(operands[i]) > manual_depth(operands[deepest])) deepest = i;
  if (operands.empty() || !manual_axes(operands[deepest])) return nullptr;
  const ManualAxes& place = *manual_axes(operands[deepest]);
  AxisSet varying = place.varying;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!may_enter(operands[i], place)) fail_unlike(node, deepest, i);
    if (const ManualAxes* manual = manual_axes(operands[i])) varying = varying | manual->varying;
  }
  for (const Value& operand : operands)
    if (const ManualAxes* manual = manual_axes(operand);
        manual && manual->varying == varying && manual->depth() == place.depth())
      return operand->annotations();
  return annotations_of(place.with_varying(varying));
}

}  // namespace

AnnotationsPtr annotate_results(const Node& node) {
  AnnotationsPtr made = node.op().annotate ? node.op().annotate(node) : annotate_by_operands(node);
  if (internal::recorder().forbidden) [[unlikely]]
    internal::check_no_collectives(node, made.get());
  return made;
}

AnnotationsPtr annotate_by_operands(const Node& node) {
  AnnotationsPtr manual = meet_manual(node);
  return manual ? manual : infer_shardings(node);
}

bool is_free(const Value& value) {
  std::vector<Value> waiting{value};
  std::unordered_set<const Node*> seen;
  while (!waiting.empty()) {
    Value each = std::move(waiting.back());
    waiting.pop_back();
    if (!seen.insert(each.node()).second) continue;
    if (manual_axes(each)) return false;
    const OpDef& op = each->op();
    bool leaf = &op == &array_op || &op == &parameter_op;
    if (!leaf && op.operands.empty()) continue;  // a constant
    if (leaf || each.storage()) {
      if (each.type().rank() != 0) return false;
      continue;
    }
    waiting.insert(waiting.end(), each->operands().begin(), each->operands().end());
  }
  return true;
}

bool may_enter(const Value& value, const ManualAxes& place) {
  const ManualAxes* manual = manual_axes(value);
  if (!manual) return is_free(value);
  if (manual->same_place(place)) return true;
  bool is_splat = value->op().traits.repeats_elements && value->operands().size() == 1 &&
                  value->operands()[0].type().rank() == 0;
  return (is_splat || value.type().rank() == 0) && place.is_inside(*manual);
}

AnnotationsPtr annotations_of(ManualAxes manual) {
  return std::make_shared<const Annotations>(Annotations{.manual = std::move(manual)});
}

}  // namespace meshard
