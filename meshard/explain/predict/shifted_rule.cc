#include "meshard/explain/predict/shifted_rule.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace meshard {
namespace {

using stablehlo::integers_of;
using stablehlo::Module;
using stablehlo::ModuleOp;
using Numbers = std::vector<std::int64_t>;

// The integers of the first of these attributes that the op has.
Numbers list(const Module& module, const ModuleOp& op,
             std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    std::string_view text = stablehlo::find_attribute(op.attributes, name);
    if (!text.empty()) return integers_of(module.resolve(text));
  }
  return {};
}

bool all_are(const Numbers& numbers, std::int64_t wanted) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [&](std::int64_t number) { return number == wanted; });
}

// The first index of each dimension of a slice, from `[0:10, 0:32]` or the generic form; none if
// the slice has strides.
std::optional<Numbers> starts_of(const Module& module, const ModuleOp& op) {
  std::string_view ranges = stablehlo::find_attribute(op.attributes, "");
  if (ranges.empty()) {
    if (!all_are(list(module, op, {"strides"}), 1)) return std::nullopt;
    return list(module, op, {"start_indices"});
  }
  Numbers starts;
  for (std::size_t at = 0; at < ranges.size();) {
    std::size_t comma = std::min(ranges.find(',', at), ranges.size());
    Numbers range = integers_of(ranges.substr(at, comma - at));
    if (range.empty() || (range.size() > 2 && range[2] != 1)) return std::nullopt;
    starts.push_back(range[0]);
    at = comma + 1;
  }
  return starts;
}

// The padding in front of each dimension; none if there is padding between elements.
std::optional<Numbers> fronts_of(const Module& module, const ModuleOp& op) {
  if (!all_are(list(module, op, {"interior", "interior_padding"}), 0)) return std::nullopt;
  return list(module, op, {"low", "edge_padding_low"});
}

}  // namespace

std::optional<ShiftedRule> shifted_rule(const Module& module, const ModuleOp& op,
                                        std::span<const TensorType> operands,
                                        std::span<const TensorType> results) {
  bool slice = op.mnemonic == "stablehlo.slice" && operands.size() == 1;
  bool pad = op.mnemonic == "stablehlo.pad" && operands.size() == 2;
  if (results.size() != 1 || (!slice && !pad)) return std::nullopt;
  const Shape &from = operands[0].shape, &to = results[0].shape;
  if (from.rank() != to.rank()) return std::nullopt;
  std::optional<Numbers> shifts = slice ? starts_of(module, op) : fronts_of(module, op);
  if (!shifts) return std::nullopt;
  ShardingRuleBuilder builder;
  TensorFactors factors;
  for (int d = 0; d < from.rank(); ++d) {
    std::int64_t less = std::min(from[d], to[d]), more = std::max(from[d], to[d]);
    if (2 * less <= more && less != more) return std::nullopt;
    factors.push_back(
        {builder.factor(more, less == more ? FactorKind::kPassThrough : FactorKind::kPermutation)});
  }
  builder.operand(factors);
  if (pad) builder.operand({});
  return ShiftedRule{builder.result(factors).build(), all_are(*shifts, 0)};
}

}  // namespace meshard
