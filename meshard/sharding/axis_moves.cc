#include "meshard/sharding/axis_moves.h"

#include <algorithm>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/sharding/propagate.h"

namespace meshard {
namespace {

std::vector<AxisList> dimensions_of(const Sharding& sharding) {
  std::vector<AxisList> axes;
  for (std::size_t d = 0; d < sharding.rank(); ++d) axes.push_back(sharding.axes(d));
  return axes;
}

bool is_in(const AxisRef& axis, const AxisList& list) {
  return std::ranges::any_of(list, [&](const AxisRef& other) { return other.contains(axis); });
}

class MoveFinder {
 public:
  MoveFinder(const ShardingRule& rule, std::span<const Sharding> operands,
             std::span<const Sharding> results)
      : rule_(rule),
        operands_(operands),
        results_(results),
        wanted_(rule.factors().size()),
        in_result_(rule.factors().size()) {}

  std::vector<AxisMove> run() {
    for (std::size_t t = 0; t < results_.size(); ++t) read_result(t);
    for (std::size_t t = 0; t < operands_.size(); ++t) read_operand(t);
    return std::move(moves_);
  }

 private:
  // Several results have a factor split alike, or the op would be ambiguous.
  void read_result(std::size_t t) {
    const Sharding& result = results_[t];
    std::vector<AxisList> mine =
        factor_axes(result.mesh(), rule_, rule_.results()[t], dimensions_of(result));
    for (const DimensionFactors& dimension : rule_.results()[t])
      for (int factor : dimension) {
        auto f = static_cast<std::size_t>(factor);
        in_result_[f] = true;
        if (wanted_[f].empty()) wanted_[f] = mine[f];
      }
    for (const AxisRef& axis : summed_axes(result)) unreduced_.push_back(axis);
  }

  void read_operand(std::size_t t) {
    const Sharding& operand = operands_[t];
    std::vector<std::size_t> unfit;
    std::vector<AxisList> mine =
        factor_axes(operand.mesh(), rule_, rule_.operands()[t], dimensions_of(operand), &unfit);
    for (std::size_t d = 0; d < operand.rank(); ++d) {
      if (std::ranges::find(unfit, d) != unfit.end())
        add(t, d, operand.axes(d), "and does not align with the parts that the op makes of it");
      for (int factor : rule_.operands()[t][d])
        read_factor(t, d, static_cast<std::size_t>(factor), mine[static_cast<std::size_t>(factor)]);
    }
    AxisList summed;
    for (const AxisRef& axis : summed_axes(operand))
      if (!is_in(axis, unreduced_)) summed.push_back(axis);
    if (!summed.empty())
      moves_.push_back({summed, t,
                        cat("operand ", t, " is unreduced over ", to_string(summed),
                            ", and the result is its sum")});
  }

  void read_factor(std::size_t t, std::size_t d, std::size_t f, const AxisList& own) {
    switch (rule_.factors()[f].kind) {
      case FactorKind::kReduction: {
        AxisList summed;
        for (const AxisRef& axis : own)
          if (!is_in(axis, unreduced_)) summed.push_back(axis);
        return add(t, d, summed, "which the op sums or reduces over");
      }
      case FactorKind::kNeedReplication: return add(t, d, own, "which the op needs whole");
      case FactorKind::kPermutation:
        return add(t, d, own, "along which the op shifts elements from device to device");
      case FactorKind::kPassThrough: break;
    }
    std::size_t kept = 0;  // the common prefix: those parts stay where they are
    if (in_result_[f])
      while (kept < own.size() && kept < wanted_[f].size() && own[kept] == wanted_[f][kept]) ++kept;
    if (kept + 1 == own.size() && kept < wanted_[f].size() && in_result_[f] &&
        own[kept].is_prefix_of(wanted_[f][kept]))
      ++kept;
    add(t, d, {own.begin() + static_cast<std::ptrdiff_t>(kept), own.end()},
        in_result_[f] ? cat("and the result is split by ", to_string(wanted_[f]), " there")
                      : std::string("which the op needs whole"));
  }

  void add(std::size_t operand, std::size_t dimension, const AxisList& axes, std::string_view why) {
    if (axes.empty()) return;
    moves_.push_back({axes, operand,
                      cat(to_string(axes), " splits dimension ", dimension, " of operand ", operand,
                          ", ", why)});
  }

  const ShardingRule& rule_;
  std::span<const Sharding> operands_, results_;
  std::vector<AxisList> wanted_;  // by factor
  std::vector<bool> in_result_;   // by factor
  AxisList unreduced_;            // of the results
  std::vector<AxisMove> moves_;
};

}  // namespace

AxisList summed_axes(const Sharding& sharding) {
  return sharding.unreduced_kind() == UnreducedKind::kSum ? sharding.unreduced_axes() : AxisList();
}

std::vector<AxisMove> axis_moves(const ShardingRule& rule, std::span<const Sharding> operands,
                                 std::span<const Sharding> results) {
  return MoveFinder(rule, operands, results).run();
}

std::vector<AxisMove> axis_moves(const Sharding& from, const Sharding& to) {
  const std::size_t rank = std::max(from.rank(), to.rank());
  ShardingRuleBuilder builder;
  TensorFactors factors;
  // Of any size: axes are dealt to the only factor of a dimension whether or not they divide it.
  for (std::size_t d = 0; d < rank; ++d) factors.push_back({builder.factor(from.mesh().size())});
  ShardingRule rule = builder.operand(factors).result(factors).build();
  const Sharding operand = from.with_rank(rank), result = to.with_rank(rank);
  return axis_moves(rule, {&operand, 1}, {&result, 1});
}

}  // namespace meshard
