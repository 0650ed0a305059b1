#include "meshard/explain/predict/unruled_ops.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace meshard {
namespace {

constexpr std::pair<std::string_view, CollectiveKind> kCollectiveOps[] = {
    {"stablehlo.all_gather", CollectiveKind::kAllGather},
    {"stablehlo.all_reduce", CollectiveKind::kAllReduce},
    {"stablehlo.all_to_all", CollectiveKind::kAllToAll},
    {"stablehlo.collective_broadcast", CollectiveKind::kCollectiveBroadcast},
    {"stablehlo.collective_permute", CollectiveKind::kCollectivePermute},
    {"stablehlo.reduce_scatter", CollectiveKind::kReduceScatter},
};

// The rows of `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`; -1 fills up shorter rows.
std::vector<std::vector<std::int64_t>> rows_of(std::string_view attribute) {
  std::vector<std::vector<std::int64_t>> rows;
  attribute = attribute.substr(0, attribute.find('>'));
  std::size_t begin = attribute.find('<');
  if (begin == std::string_view::npos) return rows;
  if (attribute.find('[') == std::string_view::npos && begin + 1 < attribute.size())
    return {stablehlo::integers_of(attribute.substr(begin + 1))};  // a splat: dense<0>
  for (std::size_t end = attribute.find(']'); end != std::string_view::npos;
       end = attribute.find(']', end + 1)) {
    std::size_t open = attribute.rfind('[', end);
    if (open == std::string_view::npos || open < begin) break;
    begin = end;
    std::vector<std::int64_t> row = stablehlo::integers_of(attribute.substr(open, end + 1 - open));
    std::erase(row, -1);
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

// Reads `(1)2`, a part of an axis. @return false if it is something else
bool read_part_of_axis(std::string_view text, AxisRef& axis) {
  const char* end = text.data() + text.size();
  auto [closing, first] = std::from_chars(text.data(), end, axis.pre_size);
  if (first != std::errc() || closing == end || *closing != ')') return false;
  return std::from_chars(closing + 1, end, axis.size).ec == std::errc();
}

// The axes of `#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name =
// "x">, #stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>`; none for other attributes.
std::optional<AxisList> group_axes_of(std::string_view attribute) {
  if (attribute.find("replica_group_mesh_axes<") == std::string_view::npos) return std::nullopt;
  AxisList axes;
  constexpr std::string_view kRef = "axis_ref<", kName = "name = \"", kPart = "sub_axis_info = (";
  for (std::size_t at = attribute.find(kRef); at != std::string_view::npos;
       at = attribute.find(kRef, at + 1)) {
    std::string_view ref = attribute.substr(at, attribute.find('>', at) - at);
    std::size_t begin = ref.find(kName);
    if (begin == std::string_view::npos) return std::nullopt;
    std::string_view name = ref.substr(begin + kName.size());
    AxisRef axis(name.substr(0, name.find('"')));
    std::size_t part = ref.find(kPart);
    if (part != std::string_view::npos && !read_part_of_axis(ref.substr(part + kPart.size()), axis))
      return std::nullopt;
    axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace

std::optional<StatedCollective> collective_of(const stablehlo::Module& module,
                                              const stablehlo::ModuleOp& op) {
  auto known = std::find_if(std::begin(kCollectiveOps), std::end(kCollectiveOps),
                            [&](const auto& each) { return each.first == op.mnemonic; });
  if (known == std::end(kCollectiveOps)) return std::nullopt;
  bool pairs = known->second == CollectiveKind::kCollectivePermute;
  std::string_view groups =
      stablehlo::find_attribute(op.attributes, pairs ? "source_target_pairs" : "replica_groups");
  groups = module.resolve(groups);
  return StatedCollective{known->second, rows_of(groups), group_axes_of(groups)};
}

std::optional<ShardingRule> rule_by_sizes(std::span<const TensorType> operands,
                                          std::span<const TensorType> results) {
  if (operands.size() != results.size()) return std::nullopt;
  ShardingRuleBuilder builder;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Shape &from = operands[i].shape, &to = results[i].shape;
    if (from.rank() != to.rank()) return std::nullopt;
    TensorFactors operand, result;
    for (int d = 0; d < from.rank(); ++d) {
      operand.push_back({builder.factor(from[d])});
      result.push_back(from[d] == to[d] ? operand.back() : DimensionFactors{builder.factor(to[d])});
    }
    builder.operand(std::move(operand)).result(std::move(result));
  }
  return builder.build();
}

ShardingRule whole_rule(std::span<const TensorType> operands, std::span<const TensorType> results) {
  ShardingRuleBuilder builder;
  auto whole = [&](const TensorType& type) {
    TensorFactors factors;
    for (std::int64_t size : type.shape)
      factors.push_back({builder.factor(size, FactorKind::kNeedReplication)});
    return factors;
  };
  for (const TensorType& operand : operands) builder.operand(whole(operand));
  for (const TensorType& result : results) builder.result(whole(result));
  return builder.build();
}

std::vector<std::string_view> shardings_in(std::string_view per_value) {
  std::vector<std::string_view> found;
  std::size_t list = per_value.find('['), begin = 0;
  if (list == std::string_view::npos) return found;
  int depth = 0;
  for (std::size_t at = list + 1; at < per_value.size(); ++at) {
    char c = per_value[at];
    bool opens = c == '<' || c == '[' || c == '{';
    bool closes = c == '>' || c == ']' || c == '}';
    if (opens && depth++ == 0) begin = at;
    if (!closes) continue;
    if (depth == 0) break;
    if (--depth == 0) found.push_back(per_value.substr(begin, at + 1 - begin));
  }
  return found;
}

std::vector<std::string> axes_in(std::string_view manual_axes) {
  std::vector<std::string> names;
  for (std::size_t begin = manual_axes.find('"'); begin != std::string_view::npos;) {
    std::size_t end = manual_axes.find('"', begin + 1);
    if (end == std::string_view::npos) break;
    names.emplace_back(manual_axes.substr(begin + 1, end - begin - 1));
    begin = manual_axes.find('"', end + 1);
  }
  return names;
}

}  // namespace meshard
