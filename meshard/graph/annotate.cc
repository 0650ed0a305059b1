#include "meshard/graph/annotate.h"

#include <unordered_set>
#include <vector>

#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"

namespace meshard {
namespace {

std::string describe_operand(const Node& node, std::size_t i) {
  const Value& operand = node.operands()[i];
  const ManualAxes* manual = manual_axes(operand);
  return cat("operand ", i, ", ", operand.type(), " made at ", operand->where(), ", is ",
             manual ? manual->to_string() : std::string("a full value"));
}

[[noreturn]] void fail_unlike(const Node& node, std::size_t local, std::size_t other) {
  bool both_local = manual_axes(node.operands()[other]) != nullptr;
  throw Error(ErrorCode::kInvalidArgument,
              cat("[", node.op().name, "] ",
                  both_local ? "values inside different manual axes meet"
                             : "a value inside manual axes meets a full value: pass the full value "
                               "to manual() as an argument"),
              node.where())
      .with_note(describe_operand(node, local))
      .with_note(describe_operand(node, other));
}

// The annotations that all manual operands lead to; null if none is manual.
AnnotationsPtr meet_manual(const Node& node) {
  std::span<const Value> operands = node.operands();
  std::size_t first = 0;
  while (first < operands.size() && !manual_axes(operands[first])) ++first;
  if (first == operands.size()) return nullptr;
  const ManualAxes& place = *manual_axes(operands[first]);
  AxisSet varying = place.varying;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ManualAxes* manual = manual_axes(operands[i]);
    if (manual ? !manual->same_place(place) : !is_free(operands[i])) fail_unlike(node, first, i);
    if (manual) varying = varying | manual->varying;
  }
  for (const Value& operand : operands)
    if (const ManualAxes* manual = manual_axes(operand); manual && manual->varying == varying)
      return operand->annotations();
  return annotations_of({place.mesh, place.axes, varying});
}

}  // namespace

AnnotationsPtr annotate_results(const Node& node) {
  if (node.op().annotate) return node.op().annotate(node);
  return annotate_by_operands(node);
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

AnnotationsPtr annotations_of(ManualAxes manual) {
  return std::make_shared<const Annotations>(Annotations{.manual = std::move(manual)});
}

}  // namespace meshard
