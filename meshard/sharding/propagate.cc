#include "meshard/sharding/propagate.h"

#include <algorithm>
#include <numeric>

#include "meshard/mesh/axes_index.h"

namespace meshard {
namespace {

struct FactorAxes {
  AxisList axes;
  std::size_t operand = 0, dimension = 0;  // where they come from
};

void check_operands(const ShardingRule& rule, std::span<const Sharding> operands) {
  if (operands.empty() || operands.size() != rule.operands().size())
    throw_invalid({}, "[propagate] ", operands.size(), " shardings for the ",
                  rule.operands().size(), " operands of ", rule);
  for (std::size_t t = 0; t < operands.size(); ++t) {
    if (operands[t].rank() != rule.operands()[t].size())
      throw_invalid({}, "[propagate] operand ", t, " has ", rule.operands()[t].size(),
                    " dimensions in ", rule, ", but ", operands[t].rank(), " in ", operands[t]);
    if (operands[t].mesh() != operands[0].mesh())
      throw_invalid({}, "[propagate] operands are on different meshes: operand 0 on ",
                    operands[0].mesh(), ", operand ", t, " on ", operands[t].mesh());
  }
}

bool is_prefix(const AxisList& shorter, const AxisList& longer) {
  if (shorter.size() > longer.size()) return false;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    bool same = shorter[i] == longer[i];
    if (!same && !(i + 1 == shorter.size() && shorter[i].is_prefix_of(longer[i]))) return false;
  }
  return true;
}

class Propagator {
 public:
  Propagator(const ShardingRule& rule, std::span<const Sharding> operands, Propagating how)
      : rule_(rule),
        operands_(operands),
        infer_(how == Propagating::kInfer),
        mesh_(operands[0].mesh()),
        by_factor_(rule.factors().size()) {}

  Propagation run() {
    Propagation out;
    out.conflict = collect();
    if (!out.conflict && !infer_) out.conflict = check_disjoint();
    if (out.conflict) return out;
    for (std::size_t f = 0; f < by_factor_.size(); ++f) {
      FactorKind kind = rule_.factors()[f].kind;
      AxisList* to = kind == FactorKind::kReduction         ? &out.reduced
                     : kind == FactorKind::kNeedReplication ? &out.gathered
                                                            : nullptr;
      if (to == nullptr) continue;
      for (const AxisRef& axis : by_factor_[f].axes) to->push_back(axis);
      if (kind == FactorKind::kNeedReplication) by_factor_[f].axes.clear();
    }
    for (std::size_t t = 0; t < rule_.results().size() && !out.conflict; ++t)
      out.conflict = result(t, out.results);
    if (out.conflict) out.results.clear();
    return out;
  }

 private:
  using Conflict = std::optional<ShardingConflict>;

  // Collects the axes of every factor from all operands.
  Conflict collect() {
    for (std::size_t t = 0; t < operands_.size(); ++t) {
      const Sharding& operand = operands_[t];
      if (!operand.unreduced_axes().empty())
        return ShardingConflict{std::nullopt, cat("operand ", t, " is unreduced over ",
                                                  to_string(operand.unreduced_axes()))};
      std::vector<AxisList> mine(by_factor_.size());
      for (std::size_t d = 0; d < operand.rank(); ++d) {
        const DimensionFactors& factors = rule_.operands()[t][d];
        if (!deal_axes(mesh_, rule_, factors, operand.axes(d), !infer_, mine))
          return ShardingConflict{
              std::nullopt, cat("the axes ", to_string(operand.axes(d)), " of dimension ", d,
                                " of operand ", t, " do not align with its factors in ", rule_)};
        for (int f : factors) {
          FactorAxes own{mine[static_cast<std::size_t>(f)], t, d};
          if (Conflict conflict = infer_ ? meet_alike(f, own) : meet(f, own)) return conflict;
        }
      }
    }
    return std::nullopt;
  }

  // kPredict: uses the longer list of axes.
  Conflict meet(int f, const FactorAxes& own) {
    FactorAxes& known = by_factor_[static_cast<std::size_t>(f)];
    if (is_prefix(own.axes, known.axes)) return std::nullopt;
    if (!is_prefix(known.axes, own.axes))
      return ShardingConflict{
          f, cat("factor ", factor_name(f), " is split by ", to_string(known.axes), " in operand ",
                 known.operand, " and by ", to_string(own.axes), " in operand ", own.operand)};
    known = own;
    return std::nullopt;
  }

  // kInfer: the lists of axes must be equal, or one of them empty.
  Conflict meet_alike(int f, const FactorAxes& own) {
    FactorAxes& known = by_factor_[static_cast<std::size_t>(f)];
    FactorKind kind = rule_.factors()[static_cast<std::size_t>(f)].kind;
    if (own.axes.empty()) return std::nullopt;
    auto splits = [](const FactorAxes& side) {
      return cat(to_string(side.axes), " splits dimension ", side.dimension, " of operand ",
                 side.operand);
    };
    if (kind == FactorKind::kNeedReplication)
      return ShardingConflict{
          f, cat(splits(own), ", but the op requires this dimension to be unsplit")};
    if (!known.axes.empty() && known.axes != own.axes)
      return ShardingConflict{f, cat(splits(known), " and ", splits(own),
                                     ", but these dimensions must be split by the same axes")};
    if (!known.axes.empty() && kind == FactorKind::kReduction)
      return ShardingConflict{
          f, cat(splits(known), " and ", splits(own),
                 ", so each device has a partial sum: the result could be replicated or split")};
    known = own;
    return std::nullopt;
  }

  Conflict check_disjoint() const {
    for (std::size_t f = 0; f < by_factor_.size(); ++f)
      for (std::size_t g = 0; g < f; ++g)
        for (const AxisRef& a : by_factor_[f].axes)
          for (const AxisRef& b : by_factor_[g].axes)
            if (a.overlaps(b))
              return ShardingConflict{
                  static_cast<int>(g),
                  cat("axis ", a, " splits factor ", factor_name(static_cast<int>(g)),
                      " in operand ", by_factor_[g].operand, " and factor ",
                      factor_name(static_cast<int>(f)), " in operand ", by_factor_[f].operand)};
    return std::nullopt;
  }

  Conflict result(std::size_t t, std::vector<Sharding>& results) const {
    std::vector<DimensionSpec> dimensions;
    for (std::size_t d = 0; d < rule_.results()[t].size(); ++d) {
      AxisList axes;
      // True if every factor so far is split into single elements. For kInfer it is enough that
      // each is split.
      bool whole_before = true;
      for (int factor : rule_.results()[t][d]) {
        const AxisList& mine = by_factor_[static_cast<std::size_t>(factor)].axes;
        std::int64_t tiles = AxesIndex(mesh_, mine).size();
        if (tiles > 1 && !whole_before)
          return ShardingConflict{
              factor, cat("dimension ", d, " of result ", t, " would be strided: its factor ",
                          factor_name(factor), " is split by ", to_string(mine),
                          " inside a factor that is not fully split")};
        for (const AxisRef& axis : mine) push_axis(mesh_, axes, axis);
        bool whole = tiles == rule_.factors()[static_cast<std::size_t>(factor)].size;
        whole_before = whole_before && (whole || (infer_ && tiles > 1));
      }
      dimensions.emplace_back(std::move(axes));
    }
    if (infer_)
      if (Conflict conflict = twice(t, dimensions)) return conflict;
    results.push_back(Sharding(mesh_, PartitionSpec(std::move(dimensions))));
    return std::nullopt;
  }

  // Reports an axis that would split two dimensions of one result.
  Conflict twice(std::size_t t, const std::vector<DimensionSpec>& dimensions) const {
    for (std::size_t d = 0; d < dimensions.size(); ++d)
      for (std::size_t e = 0; e < d; ++e)
        for (const AxisRef& a : dimensions[d].axes())
          for (const AxisRef& b : dimensions[e].axes())
            if (a.overlaps(b))
              return ShardingConflict{std::nullopt, cat("axis ", a, " would split dimensions ", e,
                                                        " and ", d, " of result ", t)};
    return std::nullopt;
  }

  const ShardingRule& rule_;
  std::span<const Sharding> operands_;
  bool infer_;
  Mesh mesh_;
  std::vector<FactorAxes> by_factor_;
};

}  // namespace

bool deal_axes(const Mesh& mesh, const ShardingRule& rule, const DimensionFactors& factors,
               const AxisList& axes, bool may_cut, std::vector<AxisList>& by_factor) {
  auto of = [&](std::size_t i) -> AxisList& {
    return by_factor[static_cast<std::size_t>(factors[i])];
  };
  auto size_of = [&](std::size_t i) {
    return rule.factors()[static_cast<std::size_t>(factors[i])].size;
  };
  std::size_t at = 0;
  std::int64_t left = size_of(0);  // of the current factor, not covered by axes yet
  for (const AxisRef& axis : axes) {
    std::int64_t pre = axis.is_whole() ? 1 : axis.pre_size, size = mesh.axis_size(axis);
    if (size == 1) {
      of(at).push_back(axis);
      continue;
    }
    while (size > 1) {
      while (left == 1 && at + 1 < factors.size()) left = size_of(++at);
      std::int64_t taken = size;
      if (at + 1 < factors.size()) {  // the last factor takes all remaining axes, even if uneven
        taken = std::gcd(size, left);
        if (taken != size && (taken != left || !may_cut)) return false;
      }
      push_axis(mesh, of(at), {axis.name, pre, taken});
      pre *= taken;
      size /= taken;
      left = left % taken == 0 ? left / taken : 1;
    }
  }
  return true;
}

Propagation propagate(const ShardingRule& rule, std::span<const Sharding> operands,
                      Propagating how) {
  check_operands(rule, operands);
  return Propagator(rule, operands, how).run();
}

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
