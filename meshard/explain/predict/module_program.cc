#include "meshard/explain/predict/module_program.h"

#include <algorithm>
#include <unordered_map>

#include "meshard/base/cat.h"
#include "meshard/explain/predict/op_moves.h"
#include "meshard/lowering/module_rules.h"
#include "meshard/sharding/shardy_text.h"
#include "meshard/stablehlo/types.h"

namespace meshard {
namespace {

using stablehlo::Module;
using stablehlo::ModuleFunction;
using stablehlo::ModuleOp;
using stablehlo::ModuleRegion;

// A valid module has no recursion, and its functions are called a limited number of times; damaged
// text may ask for more.
constexpr int kDeepestCall = 16;
constexpr std::size_t kMostOps = 300'000;

class ModuleWalk {
 public:
  ModuleWalk(const Module& module, ModuleProgram::State& out) : module_(module), out_(out) {
    for_each_op(module.ops(), [&](const ModuleOp& op) {
      if (op.mnemonic != "stablehlo.constant" || op.results.size() != 1) return;
      std::string_view written = stablehlo::find_attribute(op.attributes, "");
      if (written.empty()) written = stablehlo::find_attribute(op.attributes, "value");
      std::vector<std::int64_t> numbers = stablehlo::integers_of(written);
      if (written.starts_with("dense<") && numbers.size() == 1)
        constants_.emplace(op.results[0], numbers[0]);
    });
  }

  void run(const ModuleFunction& main) {
    if (main.op->regions.empty()) return;
    const ModuleRegion& body = main.op->regions[0];
    Values values;
    for (int argument : body.arguments) out_.arguments.push_back(add(values, argument));
    out_.results = region(body, values);
    // Results have values of their own: what they are wanted as is not what they are made as.
    for (std::optional<std::size_t>& result : out_.results) {
      if (!result) continue;
      std::size_t wanted = out_.rules.add_value(out_.rules.types[*result]);
      pass(*result, wanted, "func.return");
      result = wanted;
    }
  }

 private:
  // The values of the variables of one call of a function.
  using Values = std::unordered_map<int, std::size_t>;
  using Numbers = std::vector<std::optional<std::size_t>>;

  std::optional<std::size_t> add(Values& values, int variable) {
    std::optional<TensorType> type = stablehlo::parse_type(module_.variable(variable).type);
    if (!type) return std::nullopt;
    std::size_t number = out_.rules.add_value(std::move(*type));
    values[variable] = number;
    return number;
  }
  static std::optional<std::size_t> find(const Values& values, int variable) {
    auto found = values.find(variable);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
  static Numbers find_all(const Values& values, const std::vector<int>& variables) {
    Numbers out;
    for (int variable : variables) out.push_back(find(values, variable));
    return out;
  }

  void add_op(ShardingRule rule, std::vector<std::size_t> operands,
              std::vector<std::size_t> results, std::string_view mnemonic,
              std::string_view location = {}) {
    auto is_scalar = [&](std::size_t value) { return out_.rules.types[value].rank() == 0; };
    if (std::all_of(operands.begin(), operands.end(), is_scalar) &&
        std::all_of(results.begin(), results.end(), is_scalar))
      return;  // nothing to split
    RuledOpFacts facts;
    facts.origin.op = mnemonic;
    facts.origin.place = module_.location_name(location);
    facts.asked = mnemonic == "sdy.sharding_constraint";
    facts.repeats = repeats_;
    out_.rules.facts.push_back(std::move(facts));
    out_.rules.ops.push_back({std::move(rule), std::move(operands), std::move(results)});
  }

  // A value that another one becomes: a loop's argument, the result of a branch.
  void pass(std::optional<std::size_t> from, std::optional<std::size_t> to,
            std::string_view mnemonic) {
    if (!from || !to) return;
    std::vector<TensorType> types = {out_.rules.types[*from], out_.rules.types[*to]};
    if (types[0].shape != types[1].shape) return;
    std::optional<ShardingRule> rule = element_wise_rule({&types[0], 1}, {&types[1], 1});
    if (rule) add_op(*rule, {*from}, {*to}, mnemonic);
  }

  // Reads a region's ops; returns the operands of its last op.
  Numbers region(const ModuleRegion& region, Values& values) {
    for (const ModuleOp& op : region.ops) {
      if (op.mnemonic.ends_with(".return")) return find_all(values, op.operands);
      if (++seen_ > kMostOps) return {};
      read(op, values);
    }
    return {};
  }

  void read(const ModuleOp& op, Values& values) {
    if (!op.operands.empty()) ++out_.all_ops;
    bool known = op.mnemonic == "func.call"         ? call(op, values)
                 : op.mnemonic == "stablehlo.while" ? loop(op, values)
                 : op.mnemonic == "stablehlo.case" || op.mnemonic == "stablehlo.if"
                     ? branches(op, values)
                     : plain(op, values);
    if (known && !op.operands.empty()) ++out_.known_ops;
    if (known) return;
    for (int result : op.results)
      if (std::optional<std::size_t> number = add(values, result); number && !op.operands.empty())
        out_.replicated.push_back(*number);
  }

  bool plain(const ModuleOp& op, Values& values) {
    std::vector<TensorType> operand_types, result_types;
    std::vector<std::size_t> operands;
    for (int operand : op.operands) {
      // What is not defined, or no tensor, counts as a scalar: nothing of it moves.
      std::optional<std::size_t> number = find(values, operand);
      operands.push_back(number ? *number : out_.rules.add_value({DType::f32, Shape()}));
      operand_types.push_back(out_.rules.types[operands.back()]);
    }
    for (int result : op.results) {
      std::optional<TensorType> type = stablehlo::parse_type(module_.variable(result).type);
      if (!type) return false;
      result_types.push_back(std::move(*type));
    }
    std::optional<ShardingRule> rule = rule_of_module_op(module_, op, operand_types, result_types);
    if (!rule) return false;
    std::vector<std::size_t> results;
    for (int result : op.results) results.push_back(*add(values, result));
    if (op.mnemonic == "sdy.sharding_constraint") constrain(op, results[0]);
    add_op(std::move(*rule), std::move(operands), std::move(results), op.mnemonic, op.location);
    return true;
  }

  void constrain(const ModuleOp& op, std::size_t value) {
    std::string_view text = stablehlo::find_attribute(op.attributes, "");
    if (text.empty()) text = stablehlo::find_attribute(op.attributes, "sharding");
    out_.constraints.emplace_back(value, std::string(module_.resolve(text)));
  }

  // The values of the function are those of the call.
  bool call(const ModuleOp& op, Values& values) {
    const ModuleFunction* called = module_.function(op.symbol);
    if (!called || called->op->regions.empty() || depth_ >= kDeepestCall) return false;
    const ModuleRegion& body = called->op->regions[0];
    Values inside;
    for (std::size_t i = 0; i < body.arguments.size() && i < op.operands.size(); ++i)
      if (std::optional<std::size_t> number = find(values, op.operands[i]))
        inside[body.arguments[i]] = *number;
    ++depth_;
    Numbers made = region(body, inside);
    --depth_;
    for (std::size_t i = 0; i < op.results.size(); ++i)
      if (i < made.size() && made[i])
        values[op.results[i]] = *made[i];
      else
        add(values, op.results[i]);
    return true;
  }

  // A carry is one value in the body, which comes from the operand and from the step before.
  bool loop(const ModuleOp& op, Values& values) {
    if (op.regions.size() != 2) return false;
    const ModuleRegion &condition = op.regions[0], &body = op.regions[1];
    Numbers carries;
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
      carries.push_back(add(values, body.arguments[i]));
      if (i < op.operands.size()) pass(find(values, op.operands[i]), carries[i], op.mnemonic);
      if (i < condition.arguments.size() && carries[i])
        values[condition.arguments[i]] = *carries[i];
    }
    double before = repeats_;
    repeats_ *= static_cast<double>(trips(op));
    region(condition, values);
    Numbers next = region(body, values);
    for (std::size_t i = 0; i < carries.size() && i < next.size(); ++i)
      pass(next[i], carries[i], op.mnemonic);
    repeats_ = before;
    for (std::size_t i = 0; i < op.results.size(); ++i)
      if (i < carries.size() && carries[i]) values[op.results[i]] = *carries[i];
    return true;
  }

  // The largest constant in the condition's comparisons; 1 if there is none.
  std::int64_t trips(const ModuleOp& op) const {
    std::int64_t most = 1;
    const ModuleRegion& condition = op.regions[0];
    for (const ModuleOp& inside : condition.ops) {
      if (inside.mnemonic != "stablehlo.compare") continue;
      for (int operand : inside.operands) {
        auto argument = std::find(condition.arguments.begin(), condition.arguments.end(), operand);
        auto position = static_cast<std::size_t>(argument - condition.arguments.begin());
        if (position < op.operands.size()) operand = op.operands[position];
        auto constant = constants_.find(operand);
        if (constant != constants_.end()) most = std::max(most, constant->second);
      }
    }
    return most;
  }

  bool branches(const ModuleOp& op, Values& values) {
    Numbers results;
    for (int result : op.results) results.push_back(add(values, result));
    for (const ModuleRegion& branch : op.regions) {
      Numbers made = region(branch, values);
      for (std::size_t i = 0; i < results.size() && i < made.size(); ++i)
        pass(made[i], results[i], op.mnemonic);
    }
    return true;
  }

  const Module& module_;
  ModuleProgram::State& out_;
  std::unordered_map<int, std::int64_t> constants_;  // scalars and splats, by variable
  double repeats_ = 1;
  int depth_ = 0;
  std::size_t seen_ = 0;
};

std::size_t rank_of(const RuledProgram& rules, std::size_t value) {
  return static_cast<std::size_t>(rules.types[value].rank());
}

// Sets a value's sharding; the value stays open if the spec does not fit this mesh.
void set_spec(const Mesh& mesh, const PartitionSpec& spec, PartialSharding& value) {
  try {
    value = PartialSharding::of(Sharding(mesh, spec), value.axes.size());
  } catch (const Error&) {
    // An axis has been cut into parts that this size does not have: the compiler refuses it.
  }
}

}  // namespace

Result<ModuleProgram> ModuleProgram::of(const stablehlo::Module& module) {
  const ModuleFunction* main = module.function("main");
  if (!main)
    return Error(ErrorCode::kDataLoss, "[predict] the module has no function `func.func @main(`");
  auto state = std::make_shared<State>();
  ModuleWalk(module, *state).run(*main);
  return ModuleProgram(std::move(state));
}

std::vector<PartialSharding> ModuleProgram::shardings(
    const Mesh& mesh, const std::vector<std::optional<PartitionSpec>>& arguments,
    const std::vector<std::optional<PartitionSpec>>& results) const {
  const RuledProgram& rules = state_->rules;
  std::vector<PartialSharding> values;
  for (std::size_t v = 0; v < rules.types.size(); ++v)
    values.push_back(PartialSharding::open_value(rank_of(rules, v)));
  for (std::size_t value : state_->replicated)
    values[value].open.assign(values[value].open.size(), false);
  for (const auto& [value, text] : state_->constraints) {
    Result<Sharding> wanted = parse_shardy_sharding(text, mesh);
    if (wanted.ok()) values[value] = PartialSharding::of(*wanted, rank_of(rules, value));
  }
  auto set = [&](const std::vector<std::optional<std::size_t>>& numbers,
                 const std::vector<std::optional<PartitionSpec>>& specs) {
    for (std::size_t i = 0; i < numbers.size() && i < specs.size(); ++i)
      if (numbers[i] && specs[i]) set_spec(mesh, *specs[i], values[*numbers[i]]);
  };
  set(state_->arguments, arguments);
  set(state_->results, results);
  propagate_program(mesh, rules.ops, values);
  return values;
}

double ModuleProgram::communication(
    const Mesh& mesh, const std::vector<std::optional<PartitionSpec>>& arguments,
    const std::vector<std::optional<PartitionSpec>>& results) const {
  double bytes = 0;
  std::vector<PartialSharding> values = shardings(mesh, arguments, results);
  predict_moves(mesh, state_->rules, values, [&](std::size_t op, const PredictedMove& move) {
    bytes += static_cast<double>(move.bytes) * state_->rules.facts[op].repeats;
  });
  return bytes;
}

}  // namespace meshard
