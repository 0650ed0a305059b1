#include "meshard/explain/predict_shardings.h"

#include <algorithm>

#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/sharding/propagate.h"

namespace meshard {
namespace {

// Each round extends some dimension by an axis; real programs need fewer rounds.
constexpr int kMostRounds = 1000;

struct Slot {
  bool known = false;
  std::vector<AxisList> axes;
  std::vector<bool> open;
  AxisList forbidden;  // not allowed in open dimensions
};

bool continues_to(const AxisList& shorter, const AxisList& longer) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

AxisList common_prefix(const AxisList& a, const AxisList& b) {
  AxisList both;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    both.push_back(a[i]);
  return both;
}

bool only_passes_dimensions_on(const ShardingRule& rule) {
  return std::all_of(rule.factors().begin(), rule.factors().end(),
                     [](const Factor& factor) { return factor.kind == FactorKind::kPassThrough; });
}

class Spreading {
 public:
  Spreading(const Graph& graph, const Mesh& mesh) : graph_(graph), mesh_(mesh) {
    for (const Value& leaf : graph.parameters()) start_leaf(leaf);
    for (const Value& leaf : graph.captured()) start_leaf(leaf);
    for (const Node* node : graph.nodes()) start_node(*node);
  }

  ShardingsOfValues run() {
    for (bool all_ops : {false, true}) {
      bool changed = true;
      for (int round = 0; changed && round < kMostRounds; ++round) {
        changed = false;
        auto nodes = graph_.nodes();
        for (std::size_t i = 0; i < nodes.size(); ++i) changed |= spread(*nodes[i], i, all_ops);
        for (std::size_t i = nodes.size(); i-- > 0;) changed |= spread(*nodes[i], i, all_ops);
      }
    }
    ShardingsOfValues shardings;
    for (const std::vector<Slot>& results : slots_) {
      auto& out = shardings.emplace_back();
      for (const Slot& slot : results)
        out.push_back(slot.known ? std::optional(sharding_of(mesh_, slot.axes)) : std::nullopt);
    }
    return shardings;
  }

 private:
  static Slot open_slot(const TensorType& type) {
    auto rank = static_cast<std::size_t>(type.rank());
    return {true, std::vector<AxisList>(rank), std::vector<bool>(rank, true), {}};
  }

  Slot slot_of(const Sharding& sharding, const TensorType& type) const {
    if (sharding.mesh() != mesh_) return {};
    Slot slot = open_slot(type);
    slot.open.assign(slot.open.size(), false);
    for (std::size_t d = 0; d < sharding.rank(); ++d) {
      slot.axes[d] = sharding.axes(d);
      slot.open[d] = sharding.is_open(d);
    }
    slot.forbidden = sharding.replicated_axes();
    return slot;
  }

  void start_leaf(const Value& leaf) {
    const Sharding* sharding = leaf_sharding(leaf);
    std::optional<Sharding> marked = marked_sharding(leaf);
    Slot slot = sharding ? slot_of(*sharding, leaf.type())
                : marked ? slot_of(*marked, leaf.type())
                         : open_slot(leaf.type());
    std::vector<Slot> results;
    for (std::uint32_t i = 0; i < leaf->num_outputs(); ++i)
      results.push_back(i == leaf.index() ? slot : open_slot(leaf->type(i)));
    slots_.push_back(std::move(results));
  }

  void start_node(const Node& node) {
    std::vector<Slot> results;
    for (std::uint32_t i = 0; i < node.num_outputs(); ++i) {
      std::optional<Sharding> marked = marked_sharding(Value(const_cast<Node*>(&node), i));
      const Sharding* part = explicit_sharding(node, i);
      if (node.annotations() && node.annotations()->manual)
        results.emplace_back();
      else if (marked)
        results.push_back(slot_of(*marked, node.type(i)));
      else if (part)
        results.push_back(slot_of(*part, node.type(i)));
      else
        results.push_back(open_slot(node.type(i)));
    }
    slots_.push_back(std::move(results));
    rules_.push_back(node.op().sharding_rule ? std::optional(node.op().sharding_rule(call_of(node)))
                                             : std::nullopt);
  }

  Slot& slot(const Value& value) { return slots_[graph_.number(value.node())][value.index()]; }

  bool spread(const Node& node, std::size_t position, bool all_ops) {
    const std::optional<ShardingRule>& rule = rules_[position];
    if (!rule || (!all_ops && !only_passes_dimensions_on(*rule))) return false;
    std::vector<Slot*> slots;
    std::vector<const TensorFactors*> tensors;
    for (std::size_t t = 0; t < node.operands().size(); ++t) {
      slots.push_back(&slot(node.operands()[t]));
      tensors.push_back(&rule->operands()[t]);
    }
    for (std::uint32_t r = 0; r < node.num_outputs(); ++r) {
      slots.push_back(&slots_[graph_.num_leaves() + position][r]);
      tensors.push_back(&rule->results()[r]);
    }
    std::vector<std::vector<AxisList>> by_tensor;
    for (std::size_t t = 0; t < slots.size(); ++t) {
      if (!slots[t]->known) return false;
      by_tensor.push_back(factor_axes(mesh_, *rule, *tensors[t], slots[t]->axes));
    }
    std::vector<AxisList> merged = merge(*rule, tensors, by_tensor);
    bool changed = false;
    for (std::size_t t = 0; t < slots.size(); ++t)
      changed |= extend(*slots[t], *rule, *tensors[t], by_tensor[t], merged);
    return changed;
  }

  // Merges the axes of the tensors that have a factor: the longest list, or the common prefix.
  std::vector<AxisList> merge(const ShardingRule& rule,
                              const std::vector<const TensorFactors*>& tensors,
                              const std::vector<std::vector<AxisList>>& by_tensor) const {
    std::vector<AxisList> merged(rule.factors().size());
    std::vector<bool> settled(merged.size(), false);
    for (std::size_t t = 0; t < tensors.size(); ++t)
      for (const DimensionFactors& dimension : *tensors[t])
        for (int factor : dimension) {
          auto f = static_cast<std::size_t>(factor);
          const AxisList& own = by_tensor[t][f];
          if (rule.factors()[f].kind == FactorKind::kNeedReplication || settled[f]) continue;
          if (continues_to(merged[f], own)) {
            merged[f] = own;
          } else if (!continues_to(own, merged[f])) {
            merged[f] = common_prefix(own, merged[f]);
            settled[f] = true;
          }
        }
    return merged;
  }

  bool extend(Slot& slot, const ShardingRule& rule, const TensorFactors& tensor,
              std::vector<AxisList> own, const std::vector<AxisList>& merged) const {
    bool changed = false;
    for (std::size_t d = 0; d < tensor.size(); ++d) {
      if (!slot.open[d]) continue;
      for (int factor : tensor[d]) {
        auto f = static_cast<std::size_t>(factor);
        if (rule.factors()[f].size <= 1 || !continues_to(own[f], merged[f])) continue;
        for (std::size_t i = own[f].size(); i < merged[f].size(); ++i) {
          if (is_taken(slot, merged[f][i])) break;
          own[f].push_back(merged[f][i]);
          std::vector<AxisList> axes = dimension_axes(mesh_, rule, {tensor[d]}, own);
          if (axes[0] == slot.axes[d]) break;  // the axis cannot be expressed on this dimension
          slot.axes[d] = std::move(axes[0]);
          changed = true;
        }
      }
    }
    return changed;
  }

  static bool is_taken(const Slot& slot, const AxisRef& axis) {
    auto overlaps = [&](const AxisRef& other) { return axis.overlaps(other); };
    if (std::any_of(slot.forbidden.begin(), slot.forbidden.end(), overlaps)) return true;
    for (const AxisList& axes : slot.axes)
      if (std::any_of(axes.begin(), axes.end(), overlaps)) return true;
    return false;
  }

  Graph graph_;
  Mesh mesh_;
  std::vector<std::vector<Slot>> slots_;
  std::vector<std::optional<ShardingRule>> rules_;  // by position among the nodes
};

}  // namespace

std::vector<AxisList> factor_axes(const Mesh& mesh, const ShardingRule& rule,
                                  const TensorFactors& tensor,
                                  const std::vector<AxisList>& dimensions,
                                  std::vector<std::size_t>* unfit) {
  std::vector<AxisList> by_factor(rule.factors().size());
  for (std::size_t d = 0; d < tensor.size(); ++d) {
    std::vector<AxisList> tried = by_factor;
    if (deal_axes(mesh, rule, tensor[d], dimensions[d], /*may_cut=*/true, tried))
      by_factor = std::move(tried);
    else if (unfit)
      unfit->push_back(d);
  }
  return by_factor;
}

std::vector<AxisList> dimension_axes(const Mesh& mesh, const ShardingRule& rule,
                                     const TensorFactors& tensor,
                                     const std::vector<AxisList>& by_factor,
                                     std::vector<int>* strided) {
  std::vector<AxisList> dimensions;
  for (const DimensionFactors& factors : tensor) {
    AxisList axes;
    bool whole_before = true;
    for (int factor : factors) {
      const AxisList& own = by_factor[static_cast<std::size_t>(factor)];
      std::int64_t tiles = AxesIndex(mesh, own).size();
      if (tiles > 1 && !whole_before) {
        if (strided) strided->push_back(factor);
        continue;
      }
      for (const AxisRef& axis : own) push_axis(mesh, axes, axis);
      whole_before = whole_before && tiles == rule.factors()[static_cast<std::size_t>(factor)].size;
    }
    dimensions.push_back(std::move(axes));
  }
  return dimensions;
}

Sharding sharding_of(const Mesh& mesh, const std::vector<AxisList>& dimensions) {
  std::vector<DimensionSpec> specs;
  for (const AxisList& axes : dimensions) specs.emplace_back(axes);
  return Sharding(mesh, PartitionSpec(std::move(specs)));
}

ShardingsOfValues predict_shardings(const Graph& graph, const Mesh& mesh) {
  return Spreading(graph, mesh).run();
}

}  // namespace meshard
