#include "meshard/sharding/propagate_program.h"

#include <algorithm>

#include "meshard/mesh/axes_index.h"
#include "meshard/sharding/propagate.h"

namespace meshard {
namespace {

// Each round extends some dimension by an axis; real programs need fewer rounds.
constexpr int kMostRounds = 1000;

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
  Spreading(const Mesh& mesh, std::span<const RuledOp> ops, std::vector<PartialSharding>& values)
      : mesh_(mesh), ops_(ops), values_(values), changed_at_(values.size(), 1), seen_(ops.size()) {
    for (const RuledOp& op : ops) passes_.push_back(only_passes_dimensions_on(op.rule));
  }

  void run() {
    for (bool all_ops : {false, true}) {
      bool changed = true;
      for (int round = 0; changed && round < kMostRounds; ++round) {
        changed = false;
        for (std::size_t i = 0; i < ops_.size(); ++i) changed |= visit(i, all_ops);
        for (std::size_t i = ops_.size(); i-- > 0;) changed |= visit(i, all_ops);
      }
    }
  }

 private:
  // Spreads through an op if one of its values has changed since it was seen last.
  bool visit(std::size_t position, bool all_ops) {
    if (!all_ops && !passes_[position]) return false;
    const RuledOp& op = ops_[position];
    bool due = false, split = false, known = true;
    for (const std::vector<std::size_t>* side : {&op.operands, &op.results})
      for (std::size_t value : *side) {
        due = due || changed_at_[value] > seen_[position];
        split = split || !values_[value].is_whole();
        known = known && values_[value].known;
      }
    if (!due || !split || !known) return false;
    seen_[position] = clock_;
    return spread(op);
  }

  bool spread(const RuledOp& op) {
    std::vector<std::size_t> numbers;
    std::vector<const TensorFactors*> tensors;
    for (std::size_t t = 0; t < op.operands.size(); ++t) {
      numbers.push_back(op.operands[t]);
      tensors.push_back(&op.rule.operands()[t]);
    }
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      numbers.push_back(op.results[r]);
      tensors.push_back(&op.rule.results()[r]);
    }
    std::vector<std::vector<AxisList>> by_tensor;
    for (std::size_t t = 0; t < numbers.size(); ++t)
      by_tensor.push_back(factor_axes(mesh_, op.rule, *tensors[t], values_[numbers[t]].axes));
    std::vector<AxisList> merged = merge(op.rule, tensors, by_tensor);
    bool changed = false;
    for (std::size_t t = 0; t < numbers.size(); ++t) {
      if (!extend(values_[numbers[t]], op.rule, *tensors[t], by_tensor[t], merged)) continue;
      changed_at_[numbers[t]] = ++clock_;
      changed = true;
    }
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

  bool extend(PartialSharding& slot, const ShardingRule& rule, const TensorFactors& tensor,
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

  static bool is_taken(const PartialSharding& slot, const AxisRef& axis) {
    auto overlaps = [&](const AxisRef& other) { return axis.overlaps(other); };
    if (std::any_of(slot.forbidden.begin(), slot.forbidden.end(), overlaps)) return true;
    for (const AxisList& axes : slot.axes)
      if (std::any_of(axes.begin(), axes.end(), overlaps)) return true;
    return false;
  }

  const Mesh& mesh_;
  std::span<const RuledOp> ops_;
  std::vector<PartialSharding>& values_;
  std::vector<bool> passes_;  // by op: only_passes_dimensions_on()
  // Times: of the last change of each value, and of the last visit to each op.
  std::vector<std::uint64_t> changed_at_, seen_;
  std::uint64_t clock_ = 1;
};

}  // namespace

PartialSharding PartialSharding::open_value(std::size_t rank) {
  return {true, std::vector<AxisList>(rank), std::vector<bool>(rank, true), {}};
}

PartialSharding PartialSharding::of(const Sharding& sharding, std::size_t rank) {
  PartialSharding value = open_value(rank);
  value.open.assign(rank, false);
  for (std::size_t d = 0; d < std::min(rank, sharding.rank()); ++d) {
    value.axes[d] = sharding.axes(d);
    value.open[d] = sharding.is_open(d);
  }
  value.forbidden = sharding.replicated_axes();
  return value;
}

bool PartialSharding::is_whole() const {
  return std::all_of(axes.begin(), axes.end(), [](const AxisList& own) { return own.empty(); });
}

std::optional<Sharding> PartialSharding::sharding(const Mesh& mesh) const {
  if (!known) return std::nullopt;
  return sharding_with_axes(mesh, axes);
}

void propagate_program(const Mesh& mesh, std::span<const RuledOp> ops,
                       std::vector<PartialSharding>& values) {
  Spreading(mesh, ops, values).run();
}

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

Sharding sharding_with_axes(const Mesh& mesh, const std::vector<AxisList>& dimensions) {
  std::vector<DimensionSpec> specs;
  for (const AxisList& axes : dimensions) specs.emplace_back(axes);
  return Sharding(mesh, PartitionSpec(std::move(specs)));
}

}  // namespace meshard
