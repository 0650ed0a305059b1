#include "meshard/lowering/module_rules.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/definition/op_text.h"

namespace meshard {
namespace {

// What element-wise primitives are written as.
const std::vector<std::string_view>& element_wise_mnemonics() {
  static const std::vector<std::string_view> all = [] {
    std::set<std::string_view> names;
    for (const OpDef* op : all_ops())
      if (op->sharding_rule == element_wise::rule && !op->mnemonic.empty() &&
          !op->mnemonic.starts_with("chlo."))
        names.insert(op->mnemonic);
    return std::vector<std::string_view>(names.begin(), names.end());
  }();
  return all;
}

// The other primitives, by what they are read from. Several may be read from one op of StableHLO.
const std::multimap<std::string_view, const OpDef*>& read_primitives() {
  static const std::multimap<std::string_view, const OpDef*> all = [] {
    std::multimap<std::string_view, const OpDef*> found;
    for (const OpDef* op : all_ops())
      if (!op->read.mnemonic.empty()) found.emplace(op->read.mnemonic, op);
    return found;
  }();
  return all;
}

// Whether a primitive takes this many operands: `a, b`, or `a, b...` for one or more.
bool takes(const OpDef& primitive, std::size_t count) {
  auto names = static_cast<std::size_t>(
      std::count(primitive.operands.begin(), primitive.operands.end(), ',') + 1);
  return primitive.operands.ends_with("...") ? count + 1 >= names : count == names;
}

// The rule for operands that repeat the primitive's, results that repeat its result, and initial
// values.
std::optional<ShardingRule> widened(const ShardingRule& rule, std::size_t own, const OpText& text) {
  ShardingRuleBuilder builder;
  for (const Factor& factor : rule.factors()) builder.factor(factor.size, factor.kind);
  std::size_t copies = text.results.size(), initial = text.operands.size() - own * copies;
  for (std::size_t o = 0; o < own; ++o)
    for (std::size_t i = 0; i < copies; ++i) builder.operand(rule.operands()[o]);
  for (std::size_t i = 0; i < initial; ++i) builder.operand({});
  for (std::size_t i = 0; i < copies; ++i) builder.result(rule.results()[0]);
  return builder.build();
}

std::optional<ShardingRule> rule_by_primitive(const OpDef& primitive, const OpText& text) {
  const OpReading& read = primitive.read;
  if (text.operands.size() < read.own_operands * text.results.size()) return std::nullopt;
  std::unique_ptr<const Attributes> attributes;
  if (read.attributes && !(attributes = read.attributes(text))) return std::nullopt;
  std::size_t own = read.own_operands ? read.own_operands : text.operands.size();
  if (!takes(primitive, own)) return std::nullopt;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < own; ++i) types.push_back(text.operands[i]);
  for (std::size_t i = 0; i < (read.own_operands ? 1 : text.results.size()); ++i)
    types.push_back(text.results[i]);
  if (!read.dtypes_as_written)
    for (TensorType& type : types) type.dtype = DType::f32;
  OpCall call{.op = primitive, .attributes = attributes.get(), .operands = {}, .results = {}};
  for (std::size_t i = 0; i < own; ++i) call.operands.push_back(&types[i]);
  ResultTypes inferred;
  primitive.infer(call, inferred);
  if (inferred.size() != types.size() - own) return std::nullopt;
  for (std::size_t i = own; i < types.size(); ++i) {
    if (inferred[i - own].shape != types[i].shape) return std::nullopt;
    call.results.push_back(&types[i]);
  }
  ShardingRule rule = (read.sharding_rule ? read.sharding_rule : primitive.sharding_rule)(call);
  return read.own_operands ? widened(rule, own, text) : rule;
}

bool fits_text(const ShardingRule& rule, const OpText& text) {
  auto sizes = [](std::span<const TensorType> types) {
    std::vector<IntVector> out;
    for (const TensorType& type : types) out.emplace_back(type.shape.begin(), type.shape.end());
    return out;
  };
  return rule.validate(sizes(text.operands), sizes(text.results)).ok();
}

// A custom call states its own rule; GSPMD's sharding annotations are custom calls too.
std::optional<ShardingRule> custom_call_rule(const OpText& text) {
  if (text.op.symbol == "Sharding") return element_wise_rule(text.operands, text.results);
  std::string_view written = text.attribute({"sdy.sharding_rule"});
  std::size_t begin = written.find('<'), end = written.rfind('>');
  if (begin == std::string_view::npos || end < begin) return std::nullopt;
  written = written.substr(begin + 1, end - begin - 1);
  if (written.ends_with(", custom")) written.remove_suffix(8);
  Result<ShardingRule> rule = ShardingRule::parse(written);
  return rule.ok() && fits_text(*rule, text) ? std::optional(*rule) : std::nullopt;
}

}  // namespace

std::span<const std::string_view> ruled_mnemonics() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> names = element_wise_mnemonics();
    for (const auto& [mnemonic, op] : read_primitives()) names.push_back(mnemonic);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }();
  return all;
}

std::optional<ShardingRule> element_wise_rule(std::span<const TensorType> operands,
                                              std::span<const TensorType> results) {
  if (results.empty()) return std::nullopt;
  OpCall call{.op = add_op, .operands = {}, .results = {}};
  for (const TensorType& result : results) {
    if (result.shape != results[0].shape) return std::nullopt;
    call.results.push_back(&result);
  }
  ShardingRule of_results = element_wise::rule(call);
  ShardingRuleBuilder builder;
  for (const Factor& factor : of_results.factors()) builder.factor(factor.size, factor.kind);
  for (const TensorType& operand : operands) {
    if (operand.shape != results[0].shape && operand.rank() != 0) return std::nullopt;
    builder.operand(operand.rank() == 0 ? TensorFactors() : of_results.results()[0]);
  }
  for (const TensorFactors& result : of_results.results()) builder.result(result);
  return builder.build();
}

std::optional<ShardingRule> rule_of_module_op(const stablehlo::Module& module,
                                              const stablehlo::ModuleOp& op,
                                              std::span<const TensorType> operands,
                                              std::span<const TensorType> results) {
  OpText text{module, op, operands, results};
  if (results.empty() || operands.empty()) return std::nullopt;
  // CHLO's functions are element-wise; the shapes of its few other ops differ.
  const std::vector<std::string_view>& names = element_wise_mnemonics();
  if (op.mnemonic.starts_with("chlo.") ||
      std::binary_search(names.begin(), names.end(), op.mnemonic))
    return element_wise_rule(operands, results);
  try {
    if (op.mnemonic == "stablehlo.custom_call") return custom_call_rule(text);
    auto [begin, end] = read_primitives().equal_range(op.mnemonic);
    for (auto entry = begin; entry != end; ++entry)
      if (std::optional<ShardingRule> rule = rule_by_primitive(*entry->second, text))
        return fits_text(*rule, text) ? rule : std::nullopt;
  } catch (const Error&) {
    // The primitive refuses these operands or attributes.
  }
  return std::nullopt;
}

}  // namespace meshard
