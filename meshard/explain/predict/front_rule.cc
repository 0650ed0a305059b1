#include "meshard/explain/predict/front_rule.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace meshard {
namespace {

using stablehlo::integers_of;
using stablehlo::Module;
using stablehlo::ModuleOp;

// The integers of the first of these attributes that the op has.
std::vector<std::int64_t> list(const Module& module, const ModuleOp& op,
                               std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    std::string_view text = stablehlo::find_attribute(op.attributes, name);
    if (!text.empty()) return integers_of(module.resolve(text));
  }
  return {};
}

bool all_are(const std::vector<std::int64_t>& numbers, std::int64_t wanted) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [&](std::int64_t number) { return number == wanted; });
}

// `[0:10, 0:32]`, or the generic form.
bool slices_front(const Module& module, const ModuleOp& op) {
  std::string_view ranges = stablehlo::find_attribute(op.attributes, "");
  if (ranges.empty())
    return all_are(list(module, op, {"start_indices"}), 0) &&
           all_are(list(module, op, {"strides"}), 1);
  for (std::size_t at = 0; at < ranges.size();) {
    std::size_t comma = std::min(ranges.find(',', at), ranges.size());
    std::vector<std::int64_t> range = integers_of(ranges.substr(at, comma - at));
    if (range.empty() || range[0] != 0 || (range.size() > 2 && range[2] != 1)) return false;
    at = comma + 1;
  }
  return true;
}

bool pads_ends(const Module& module, const ModuleOp& op) {
  std::vector<std::int64_t> high = list(module, op, {"high", "edge_padding_high"});
  return all_are(list(module, op, {"low", "edge_padding_low"}), 0) &&
         all_are(list(module, op, {"interior", "interior_padding"}), 0) &&
         std::all_of(high.begin(), high.end(), [](std::int64_t size) { return size >= 0; });
}

}  // namespace

std::optional<ShardingRule> front_rule(const Module& module, const ModuleOp& op,
                                       std::span<const TensorType> operands,
                                       std::span<const TensorType> results) {
  bool slice = op.mnemonic == "stablehlo.slice" && operands.size() == 1;
  bool pad = op.mnemonic == "stablehlo.pad" && operands.size() == 2;
  if (results.size() != 1 || (!slice && !pad)) return std::nullopt;
  const Shape &from = operands[0].shape, &to = results[0].shape;
  if (from.rank() != to.rank()) return std::nullopt;
  if (slice ? !slices_front(module, op) : !pads_ends(module, op)) return std::nullopt;
  ShardingRuleBuilder builder;
  TensorFactors factors;
  for (int d = 0; d < from.rank(); ++d)
    factors.push_back(
        {builder.factor(std::max(from[d], to[d]),
                        from[d] == to[d] ? FactorKind::kPassThrough : FactorKind::kPermutation)});
  builder.operand(factors);
  if (pad) builder.operand({});
  return builder.result(factors).build();
}

}  // namespace meshard
