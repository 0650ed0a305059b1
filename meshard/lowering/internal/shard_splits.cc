// Tested in meshard/lowering/shard_regions_test.cc.
#include "meshard/lowering/internal/shard_splits.h"

#include <algorithm>

#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"

namespace meshard {

ShardSplits::ShardSplits(const Graph& graph, const ProgramMeshes& meshes)
    : graph_(graph), mesh_(*meshes.numbering()) {
  auto add = [this](const Value& value) {
    if (numbers_.try_emplace({value.node(), value.index()}, values_.size()).second)
      values_.push_back(known(value));
    return number(value);
  };
  for (const Value& leaf : graph.parameters()) add(leaf);
  for (const Value& leaf : graph.captured()) add(leaf);
  std::vector<RuledOp> ops;
  for (const Node* node : graph.nodes()) {
    RuledOp op;
    for (std::uint32_t i = 0; i < node->num_outputs(); ++i)
      op.results.push_back(add(Value(const_cast<Node*>(node), i)));
    for (const Value& operand : node->operands()) op.operands.push_back(add(operand));
    if (!node->op().sharding_rule || node->operands().empty()) continue;
    op.rule = node->op().sharding_rule(call_of(*node));
    if (op.rule.operands().size() == op.operands.size() &&
        op.rule.results().size() == op.results.size())
      ops.push_back(std::move(op));
  }
  propagate_program(mesh_, ops, values_);
}

PartialSharding ShardSplits::known(const Value& value) const {
  auto rank = static_cast<std::size_t>(value.type().rank());
  if (manual_axes(value)) return {};
  std::optional<Sharding> said = marked_sharding(value);
  if (!said)
    if (const Sharding* part = explicit_sharding(value)) said = *part;
  if (!said && graph_.number(value.node()) < graph_.num_leaves())
    if (const Sharding* leaf = leaf_sharding(value)) said = *leaf;
  if (!said || said->mesh() != mesh_) return PartialSharding::open_value(rank);
  return PartialSharding::of(*said, rank);
}

ShardSplits::Shardings ShardSplits::of(const Node& node) const {
  const ShardingRule rule = node.op().sharding_rule(call_of(node));
  std::vector<AxisList> by_factor(rule.factors().size());
  std::vector<bool> shares(rule.factors().size());  // a dimension with other factors
  for (const auto* tensors : {&rule.operands(), &rule.results()})
    for (const TensorFactors& tensor : *tensors)
      for (const DimensionFactors& factors : tensor)
        for (int factor : factors)
          if (factors.size() > 1) shares[static_cast<std::size_t>(factor)] = true;
  AxisSet used;
  auto take = [&](std::size_t factor, const AxisList& axes) {
    const Factor& split = rule.factors()[factor];
    if (axes.empty() || !by_factor[factor].empty() || split.kind != FactorKind::kPassThrough ||
        shares[factor])
      return;
    for (const AxisRef& axis : axes)
      if (!axis.is_whole()) return;
    AxisSet own(mesh_, axes);
    if (split.size < 2 || !(used & own).empty()) return;
    used = used | own;
    by_factor[factor] = axes;
  };
  for (std::size_t i = 0; i < rule.operands().size(); ++i) {
    const PartialSharding& operand = values_[number(node.operands()[i])];
    if (!operand.known) continue;
    std::vector<AxisList> axes = factor_axes(mesh_, rule, rule.operands()[i], operand.axes);
    for (std::size_t f = 0; f < axes.size(); ++f) take(f, axes[f]);
  }
  auto shardings = [&](const std::vector<TensorFactors>& tensors) {
    std::vector<Sharding> made;
    for (const TensorFactors& tensor : tensors)
      made.push_back(sharding_with_axes(mesh_, dimension_axes(mesh_, rule, tensor, by_factor)));
    return made;
  };
  return {shardings(rule.operands()), shardings(rule.results())};
}

}  // namespace meshard
