#include "meshard/explain/predict/unruled_ops.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "meshard/base/cat.h"

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
  return std::ranges::all_of(numbers, [&](std::int64_t number) { return number == wanted; });
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

using stablehlo::ModuleOp;
using stablehlo::ModuleRegion;

// The op of a region that makes a value; null if it is made elsewhere.
const ModuleOp* maker(const ModuleRegion& region, int variable) {
  for (const ModuleOp& op : region.ops)
    if (std::ranges::find(op.results, variable) != op.results.end()) return &op;
  return nullptr;
}

// The values that a region returns.
const std::vector<int>* returned(const ModuleRegion& region) {
  bool ends = !region.ops.empty() && region.ops.back().mnemonic.ends_with(".return");
  return ends ? &region.ops.back().operands : nullptr;
}

class Counting {
 public:
  Counting(const ModuleOp& loop, const ModuleConstants& constants)
      : loop_(loop), constants_(constants) {}

  std::optional<std::int64_t> trips() const {
    if (loop_.regions.size() != 2) return std::nullopt;
    const std::vector<int>* goes_on = returned(condition());
    if (!goes_on || goes_on->size() != 1) return std::nullopt;
    const ModuleOp* test = maker(condition(), (*goes_on)[0]);
    if (!test || test->mnemonic != "stablehlo.compare" || test->operands.size() != 2)
      return std::nullopt;
    bool counter_first = true;
    std::optional<std::int64_t> limit = limit_of(test->operands[1]);
    std::optional<std::size_t> counter = carry(condition(), test->operands[0]);
    if (!limit || !counter) {
      counter_first = false;
      limit = limit_of(test->operands[0]);
      counter = carry(condition(), test->operands[1]);
    }
    if (!limit || !counter) return std::nullopt;
    std::optional<std::int64_t> first = initial(*counter), step = step_of(*counter);
    if (!first || !step) return std::nullopt;
    return count(direction(*test, counter_first), *first, *limit, *step);
  }

 private:
  const ModuleRegion& condition() const { return loop_.regions[0]; }
  const ModuleRegion& body() const { return loop_.regions[1]; }

  static std::optional<std::size_t> carry(const ModuleRegion& region, int variable) {
    auto found = std::ranges::find(region.arguments, variable);
    if (found == region.arguments.end()) return std::nullopt;
    return static_cast<std::size_t>(found - region.arguments.begin());
  }

  std::optional<std::int64_t> constant(int variable) const {
    auto found = constants_.find(variable);
    return found == constants_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<std::int64_t> initial(std::size_t carry) const {
    return carry < loop_.operands.size() ? constant(loop_.operands[carry]) : std::nullopt;
  }

  // The constant that a carry keeps.
  std::optional<std::int64_t> kept(std::optional<std::size_t> carry) const {
    const std::vector<int>* next = returned(body());
    bool keeps = carry && next && *carry < next->size() && *carry < body().arguments.size() &&
                 (*next)[*carry] == body().arguments[*carry];
    return keeps ? initial(*carry) : std::nullopt;
  }

  std::optional<std::int64_t> limit_of(int variable) const {
    std::optional<std::int64_t> own = constant(variable);
    return own ? own : kept(carry(condition(), variable));
  }

  // What one iteration adds to a carry.
  std::optional<std::int64_t> step_of(std::size_t counter) const {
    const std::vector<int>* next = returned(body());
    if (!next || counter >= next->size() || counter >= body().arguments.size()) return std::nullopt;
    std::int64_t sum = 0;
    int at = (*next)[counter];
    // Each turn goes back by one op.
    for (std::size_t turns = 0; turns <= body().ops.size(); ++turns) {
      if (at == body().arguments[counter]) return sum;
      const ModuleOp* op = maker(body(), at);
      if (!op || op->operands.size() != 2) return std::nullopt;
      int from = op->operands[0];
      std::optional<std::int64_t> by = step_constant(op->operands[1]);
      if (op->mnemonic == "stablehlo.add") {
        if (!by) by = step_constant(std::exchange(from, op->operands[1]));
      } else if (op->mnemonic == "stablehlo.subtract") {
        if (by && !is_far(*by)) by = -*by;
      } else {
        return std::nullopt;
      }
      if (!by || is_far(*by) || is_far(sum)) return std::nullopt;
      sum += *by;
      at = from;
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> step_constant(int variable) const {
    std::optional<std::int64_t> own = constant(variable);
    return own ? own : kept(carry(body(), variable));
  }

  // The comparison with the counter on the left: `LT`.
  static std::string_view direction(const ModuleOp& test, bool counter_first) {
    std::string_view found;
    for (const stablehlo::ModuleAttribute& attribute : test.attributes)
      for (std::string_view each : {"LT", "LE", "GT", "GE", "NE"})
        if (attribute.value == each || attribute.value.ends_with(cat(" ", each, ">"))) found = each;
    if (counter_first || found == "NE" || found.empty()) return found;
    return found == "LT" ? "GT" : found == "LE" ? "GE" : found == "GT" ? "LT" : "LE";
  }

  static std::optional<std::int64_t> count(std::string_view direction, std::int64_t first,
                                           std::int64_t limit, std::int64_t step) {
    if (is_far(first) || is_far(limit)) return std::nullopt;
    bool up = direction == "LT" || direction == "LE";
    if (direction == "NE") {
      bool meets = step != 0 && (limit - first) % step == 0 && (limit - first) / step >= 0;
      return meets ? std::optional((limit - first) / step) : std::nullopt;
    }
    if (!up && direction != "GT" && direction != "GE") return std::nullopt;
    std::int64_t distance = up ? limit - first : first - limit, stride = up ? step : -step;
    if (direction == "LE" || direction == "GE") ++distance;
    if (distance <= 0) return 0;
    if (stride <= 0) return std::nullopt;
    return (distance + stride - 1) / stride;
  }

  // No loop counts that far, and sums of nearer numbers do not overflow.
  static bool is_far(std::int64_t number) {
    constexpr std::int64_t kFarthest = std::int64_t{1} << 52;
    return number > kFarthest || number < -kFarthest;
  }

  const ModuleOp& loop_;
  const ModuleConstants& constants_;
};

}  // namespace

std::optional<StatedCollective> collective_of(const stablehlo::Module& module,
                                              const stablehlo::ModuleOp& op) {
  auto known = std::ranges::find_if(kCollectiveOps,
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

ModuleConstants constants_of(const stablehlo::Module& module) {
  ModuleConstants constants;
  for_each_op(module.ops(), [&](const ModuleOp& op) {
    if (op.mnemonic != "stablehlo.constant" || op.results.size() != 1) return;
    std::string_view written = stablehlo::find_attribute(op.attributes, "");
    if (written.empty()) written = stablehlo::find_attribute(op.attributes, "value");
    std::size_t begin = written.find('<'), end = written.find('>');
    if (!written.starts_with("dense<") || end == std::string_view::npos) return;
    std::string_view number = written.substr(begin + 1, end - begin - 1);
    if (number.find_first_not_of("-0123456789") != std::string_view::npos) return;
    std::vector<std::int64_t> numbers = stablehlo::integers_of(number);
    if (numbers.size() == 1) constants.emplace(op.results[0], numbers[0]);
  });
  return constants;
}

std::optional<std::int64_t> trips_of(const ModuleOp& loop, const ModuleConstants& constants) {
  return Counting(loop, constants).trips();
}

}  // namespace meshard
