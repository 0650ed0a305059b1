#include "meshard/explain/predict/module_program.h"

#include <algorithm>
#include <unordered_map>

#include "meshard/base/saturating.h"
#include "meshard/explain/predict/op_moves.h"
#include "meshard/explain/predict/predict.h"
#include "meshard/explain/predict/unruled_ops.h"
#include "meshard/lowering/module_rules.h"
#include "meshard/stablehlo/shardy_text.h"
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

constexpr std::string_view kConstraint = "sdy.sharding_constraint";

// The location of each op of a region. One without a location has that of the first op inside of
// it, or else of the next op: what is written for an op comes before it.
std::vector<std::string_view> locations_in(const std::vector<ModuleOp>& ops) {
  std::vector<std::string_view> locations(ops.size());
  for (std::size_t i = ops.size(); i-- > 0;) {
    locations[i] = ops[i].location;
    for (const ModuleRegion& region : ops[i].regions)
      for (const ModuleOp& inside : region.ops)
        if (locations[i].empty()) locations[i] = inside.location;
    if (locations[i].empty() && i + 1 < ops.size()) locations[i] = locations[i + 1];
  }
  return locations;
}

class ModuleWalk {
 public:
  ModuleWalk(const Module& module, const FindPlace& find_place, WalkedModule& out)
      : module_(module), find_place_(find_place), out_(out), constants_(constants_of(module)) {}

  void run(const ModuleFunction& main) {
    find_meshes();
    if (main.op->regions.empty()) return;
    const ModuleRegion& body = main.op->regions[0];
    Values values;
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
      std::string_view location =
          i < main.arguments.size() ? main.arguments[i].location : std::string_view();
      out_.arguments.push_back(add(values, body.arguments[i], place_at(location, {})));
    }
    out_.results = region(body, values);
    // Results have values of their own: what they are wanted as is not what they are made as.
    for (std::optional<std::size_t>& result : out_.results) {
      if (!result) continue;
      std::size_t wanted = copy_of(*result);
      pass(*result, wanted, {.origin = {.node = {}, .op = "func.return", .place = {}}});
      result = wanted;
    }
  }

 private:
  // The values of the variables of one call of a function.
  using Values = std::unordered_map<int, std::size_t>;
  using Numbers = std::vector<std::optional<std::size_t>>;

  // ---- Values.

  std::size_t add_value(TensorType type, std::string made_at) {
    std::size_t number = out_.rules.add_value(std::move(type), std::move(made_at));
    if (manual_) out_.local.emplace_back(number, *manual_);
    return number;
  }
  std::size_t copy_of(std::size_t value) {
    return add_value(out_.rules.types[value], out_.rules.made_at[value]);
  }

  std::optional<std::size_t> add(Values& values, int variable, const ModulePlace& place) {
    std::optional<TensorType> type = stablehlo::parse_type(module_.variable(variable).type);
    if (!type) return std::nullopt;
    std::size_t number = add_value(std::move(*type), place.origin.place);
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

  // ---- Ops.

  ModulePlace place_at(std::string_view location, std::string_view mnemonic) const {
    std::string name = module_.location_name(location);
    if (find_place_)
      if (std::optional<ModulePlace> found = find_place_(name)) return *std::move(found);
    return {{.node = {}, .op = std::string(mnemonic), .place = std::move(name)},
            mnemonic == kConstraint};
  }

  void add_op(ShardingRule rule, std::vector<std::size_t> operands,
              std::vector<std::size_t> results, RuledOpFacts facts) {
    auto is_scalar = [&](std::size_t value) { return out_.rules.types[value].rank() == 0; };
    if (!facts.stated && std::ranges::all_of(operands, is_scalar) &&
        std::ranges::all_of(results, is_scalar))
      return;  // nothing to split
    facts.region = region_;
    out_.rules.facts.push_back(std::move(facts));
    out_.rules.ops.push_back({std::move(rule), std::move(operands), std::move(results)});
  }

  // A value that another one becomes: a loop's argument, the result of a branch.
  void pass(std::optional<std::size_t> from, std::optional<std::size_t> to, RuledOpFacts facts) {
    if (!from || !to) return;
    std::vector<TensorType> types = {out_.rules.types[*from], out_.rules.types[*to]};
    if (types[0].shape != types[1].shape) return;
    std::optional<ShardingRule> rule = element_wise_rule({&types[0], 1}, {&types[1], 1});
    if (rule) add_op(*rule, {*from}, {*to}, std::move(facts));
  }

  // Reads a region's ops; returns the operands of its last op.
  Numbers region(const ModuleRegion& region, Values& values) {
    std::vector<std::string_view> locations = locations_in(region.ops);
    for (std::size_t i = 0; i < region.ops.size(); ++i) {
      const ModuleOp& op = region.ops[i];
      if (op.mnemonic.ends_with(".return")) return find_all(values, op.operands);
      if (++seen_ > kMostOps) return {};
      read(op, place_at(locations[i], op.mnemonic), values);
    }
    return {};
  }

  void read(const ModuleOp& op, const ModulePlace& place, Values& values) {
    if (!op.operands.empty()) ++out_.all_ops;
    bool known = op.mnemonic == "func.call"                ? call(op, place, values)
                 : op.mnemonic == "stablehlo.while"        ? loop(op, place, values)
                 : op.mnemonic == "sdy.manual_computation" ? manual(op, place, values)
                 : op.mnemonic == "stablehlo.case" || op.mnemonic == "stablehlo.if"
                     ? branches(op, place, values)
                     : plain(op, place, values);
    if (known && !op.operands.empty()) ++out_.known_ops;
    if (known) return;
    for (int result : op.results)
      if (std::optional<std::size_t> number = add(values, result, place);
          number && !op.operands.empty())
        out_.replicated.push_back(*number);
  }

  bool plain(const ModuleOp& op, const ModulePlace& place, Values& values) {
    std::vector<TensorType> operand_types, result_types;
    std::vector<std::size_t> operands;
    for (int operand : op.operands) {
      // What is not defined, or no tensor, counts as a scalar: nothing of it moves.
      std::optional<std::size_t> number = find(values, operand);
      operands.push_back(number ? *number : add_value({DType::f32, Shape()}, {}));
      operand_types.push_back(out_.rules.types[operands.back()]);
    }
    for (int result : op.results) {
      std::optional<TensorType> type = stablehlo::parse_type(module_.variable(result).type);
      if (!type) return false;
      result_types.push_back(std::move(*type));
    }
    std::optional<StatedCollective> stated = collective_of(module_, op);
    std::optional<ShiftedRule> shifted = shifted_rule(module_, op, operand_types, result_types);
    std::optional<ShardingRule> rule =
        shifted  ? shifted->rule
        : stated ? rule_by_sizes(operand_types, result_types)
                 : rule_of_module_op(module_, op, operand_types, result_types);
    bool opaque = !rule && op.mnemonic == "stablehlo.custom_call" && takes_whole(op);
    if (opaque) rule = whole_rule(operand_types, result_types);
    if (!rule) return false;
    std::vector<std::size_t> results;
    for (int result : op.results) results.push_back(*add(values, result, place));
    RuledOpFacts facts{
        .origin = place.origin,
        .keeps_indices = shifted && shifted->keeps_indices,
        .is_product = op.operands.size() == 2 && (op.mnemonic == "stablehlo.dot_general" ||
                                                  op.mnemonic == "stablehlo.convolution"),
        .stated = std::move(stated)};
    if (op.mnemonic == kConstraint) {
      constrain(results[0], attribute(op, {"", "sharding"}));
      if (place.is_mark) facts.asked_by = "the mark";
    }
    if (opaque) out_.replicated.insert(out_.replicated.end(), results.begin(), results.end());
    add_op(std::move(*rule), std::move(operands), std::move(results), std::move(facts));
    return true;
  }

  // False for the custom calls with which GSPMD changes between full and local values.
  static bool takes_whole(const ModuleOp& op) {
    return op.symbol != "SPMDFullToShardShape" && op.symbol != "SPMDShardToFullShape";
  }

  // The first of these attributes that the op has.
  std::string_view attribute(const ModuleOp& op,
                             std::initializer_list<std::string_view> names) const {
    std::string_view text;
    for (std::string_view name : names)
      if (text.empty()) text = stablehlo::find_attribute(op.attributes, name);
    return module_.resolve(text);
  }

  void constrain(std::size_t value, std::string_view text) {
    out_.constraints.emplace_back(value, std::string(text));
  }

  void find_meshes() {
    std::string_view first;
    for_each_op(module_.ops(), [&](const ModuleOp& op) {
      if (op.mnemonic != "sdy.mesh") return;
      std::string_view axes = attribute(op, {"", "mesh"});
      if (axes == "<[]>") return;  // of one device
      // Lowering adds a mesh that shardings do not refer to.
      if (first.empty() && op.symbol != "common_axes") first = axes;
      if (!first.empty() && axes != first) out_.other_meshes.push_back(op.symbol);
    });
  }

  // ---- Ops with regions, and calls.

  // The values of the function are those of the call.
  bool call(const ModuleOp& op, const ModulePlace& place, Values& values) {
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
        add(values, op.results[i], place);
    return true;
  }

  // A carry is one value in the body, which comes from the operand and from the step before.
  bool loop(const ModuleOp& op, const ModulePlace& place, Values& values) {
    if (op.regions.size() != 2) return false;
    const ModuleRegion &condition = op.regions[0], &body = op.regions[1];
    const RuledOpFacts facts{.origin = place.origin};
    Numbers carries;
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
      std::optional<std::size_t> given;
      if (i < op.operands.size()) given = find(values, op.operands[i]);
      carries.push_back(add(values, body.arguments[i], place));
      if (given && carries[i]) out_.rules.made_at[*carries[i]] = out_.rules.made_at[*given];
      pass(given, carries[i], facts);
      if (i < condition.arguments.size() && carries[i])
        values[condition.arguments[i]] = *carries[i];
    }
    std::size_t around = region_;
    region_ = out_.rules.add_loop(around, trips_of(op, constants_));
    region(condition, values);
    Numbers next = region(body, values);
    for (std::size_t i = 0; i < carries.size() && i < next.size(); ++i)
      if (next[i] != carries[i]) pass(next[i], carries[i], facts);
    region_ = around;
    for (std::size_t i = 0; i < op.results.size(); ++i)
      if (i < carries.size() && carries[i]) values[op.results[i]] = *carries[i];
    return true;
  }

  bool branches(const ModuleOp& op, const ModulePlace& place, Values& values) {
    Numbers results;
    for (int result : op.results) results.push_back(add(values, result, place));
    std::size_t around = region_;
    std::optional<std::size_t> first;
    for (const ModuleRegion& branch : op.regions) {
      region_ = out_.rules.add_branch(around, first);
      if (!first) first = region_;
      Numbers made = region(branch, values);
      for (std::size_t i = 0; i < results.size() && i < made.size(); ++i)
        pass(made[i], results[i], {.origin = place.origin});
    }
    region_ = around;
    return true;
  }

  // The text gives the shardings with which values enter and leave. Inside, values are local: no
  // manual axis splits them.
  bool manual(const ModuleOp& op, const ModulePlace& place, Values& values) {
    if (op.regions.size() != 1) return false;
    const ModuleRegion& body = op.regions[0];
    std::vector<std::string_view> in = shardings_in(attribute(op, {"in_shardings"}));
    std::vector<std::string_view> out = shardings_in(attribute(op, {"out_shardings"}));
    std::optional<std::size_t> around = manual_;
    std::size_t inside = add_manual_axes(axes_in(attribute(op, {"manual_axes"})));
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
      std::optional<std::size_t> given, entering;
      if (i < op.operands.size()) given = find(values, op.operands[i]);
      manual_ = around;
      if (given) {
        entering = copy_of(*given);
        if (i < in.size()) constrain(*entering, in[i]);
        pass(given, entering, {.origin = place.origin, .asked_by = "the manual function"});
      }
      manual_ = inside;
      std::optional<std::size_t> local = add(values, body.arguments[i], place);
      border(entering, local, place);
    }
    Numbers made = region(body, values);
    manual_ = around;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      std::optional<std::size_t> leaving = add(values, op.results[i], place);
      if (leaving && i < out.size()) constrain(*leaving, out[i]);
      if (i < made.size()) border(made[i], leaving, place);
    }
    return true;
  }

  std::size_t add_manual_axes(std::vector<std::string> axes) {
    if (manual_)
      for (const std::string& axis : out_.manual_axes[*manual_]) axes.push_back(axis);
    out_.manual_axes.push_back(std::move(axes));
    return out_.manual_axes.size() - 1;
  }

  // Between a full and a local value, the axes that are not manual pass.
  void border(std::optional<std::size_t> from, std::optional<std::size_t> to,
              const ModulePlace& place) {
    if (!from || !to) return;
    std::vector<TensorType> types = {out_.rules.types[*from], out_.rules.types[*to]};
    std::optional<ShardingRule> rule = rule_by_sizes({&types[0], 1}, {&types[1], 1});
    if (rule) add_op(*rule, {*from}, {*to}, {.origin = place.origin});
  }

  const Module& module_;
  const FindPlace& find_place_;
  WalkedModule& out_;
  ModuleConstants constants_;
  std::size_t region_ = 0;
  std::optional<std::size_t> manual_;  // the index of the manual axes around
  int depth_ = 0;
  std::size_t seen_ = 0;
};

// The name of the mesh in `<@mesh, [{"x"}]>`; empty for a mesh that is written in place.
std::string_view mesh_name(std::string_view sharding) {
  std::size_t begin = sharding.find('@'), end = sharding.find(',');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return sharding.substr(begin + 1, end - begin - 1);
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

std::size_t RuledProgram::add_loop(std::size_t parent, std::optional<std::int64_t> trips) {
  RuledRegion loop = regions[parent];
  loop.parent = parent;
  loop.executions = saturating_multiply(loop.executions, trips.value_or(1));
  loop.executions_known = loop.executions_known && trips.has_value();
  loop.first_branch = std::nullopt;
  regions.push_back(loop);
  return regions.size() - 1;
}

std::size_t RuledProgram::add_branch(std::size_t parent, std::optional<std::size_t> first) {
  RuledRegion branch = regions[parent];
  branch.parent = parent;
  branch.conditional = true;
  branch.first_branch = first.value_or(regions.size());
  regions.push_back(branch);
  return regions.size() - 1;
}

bool RuledProgram::is_inside(std::size_t inner, std::size_t outer) const {
  while (inner > outer) inner = regions[inner].parent;
  return inner == outer;
}

std::vector<bool> regions_with_most(const RuledProgram& program, const std::vector<double>& bytes) {
  const std::vector<RuledRegion>& regions = program.regions;
  // Regions after their parents: from the last to the first, each is complete when it is read.
  std::vector<double> all = bytes;
  std::vector<std::size_t> most(regions.size());  // by first branch
  for (std::size_t r = regions.size(); r-- > 1;) {
    const RuledRegion& region = regions[r];
    if (!region.first_branch) {
      all[region.parent] += all[r];
      continue;
    }
    std::size_t& best = most[*region.first_branch];
    if (best == 0 || all[r] >= all[best]) best = r;
    if (r == *region.first_branch) all[region.parent] += all[best];
  }
  std::vector<bool> counted(regions.size(), true);
  for (std::size_t r = 1; r < regions.size(); ++r) {
    const RuledRegion& region = regions[r];
    bool taken = !region.first_branch || most[*region.first_branch] == r;
    counted[r] = taken && counted[region.parent];
  }
  return counted;
}

WalkedModule walk(const Module& module, const ModuleFunction& main, const FindPlace& find_place) {
  WalkedModule out;
  ModuleWalk(module, find_place, out).run(main);
  return out;
}

Result<ModuleProgram> ModuleProgram::of(const stablehlo::Module& module,
                                        const FindPlace& find_place) {
  const stablehlo::ModuleFunction* main = module.function("main");
  if (!main)
    return Error(ErrorCode::kDataLoss, "[predict] the module has no function `func.func @main(`");
  return ModuleProgram(std::make_shared<const WalkedModule>(walk(module, *main, find_place)));
}

std::vector<PartialSharding> ModuleProgram::given_shardings(const Mesh& mesh) const {
  std::vector<PartialSharding> values;
  for (const TensorType& type : state_->rules.types)
    values.push_back(PartialSharding::open_value(static_cast<std::size_t>(type.rank())));
  for (std::size_t value : state_->replicated)
    values[value].open.assign(values[value].open.size(), false);
  const std::vector<std::string>& others = state_->other_meshes;
  for (const auto& [value, text] : state_->constraints) {
    if (std::ranges::find(others, mesh_name(text)) != others.end()) {
      values[value] = {};
      continue;
    }
    Result<Sharding> wanted = parse_shardy_sharding(text, mesh);
    if (wanted.ok()) values[value] = PartialSharding::of(*wanted, values[value].axes.size());
  }
  for (const auto& [value, axes] : state_->local)
    for (const std::string& axis : state_->manual_axes[axes])
      values[value].forbidden.push_back(AxisRef(axis));
  return values;
}

std::vector<PartialSharding> ModuleProgram::shardings(
    const Mesh& mesh, const std::vector<std::optional<PartitionSpec>>& arguments,
    const std::vector<std::optional<PartitionSpec>>& results) const {
  std::vector<PartialSharding> values = given_shardings(mesh);
  auto set = [&](const std::vector<std::optional<std::size_t>>& numbers,
                 const std::vector<std::optional<PartitionSpec>>& specs) {
    for (std::size_t i = 0; i < numbers.size() && i < specs.size(); ++i)
      if (numbers[i] && specs[i]) set_spec(mesh, *specs[i], values[*numbers[i]]);
  };
  set(state_->arguments, arguments);
  set(state_->results, results);
  propagate_program(mesh, rules().ops, values);
  return values;
}

PredictedTime ModuleProgram::time(const Mesh& mesh, const LinkModel& links,
                                  const std::vector<std::optional<PartitionSpec>>& arguments,
                                  const std::vector<std::optional<PartitionSpec>>& results) const {
  std::vector<PartialSharding> values = shardings(mesh, arguments, results);
  ProgramMoves found = predict_moves(mesh, rules(), values);
  const HardwareFigures& figures = links.figures();
  PredictedTime time;
  double memory_bytes = 0;
  for (const PredictedMove& move : found.moves) {
    time.communication += static_cast<double>(move.total_bytes());
    if (move.in_smaller_branch) continue;
    Collective one = predicted_collective(move.kind, move.axes, move.bytes, mesh.size());
    time.link_seconds += links.seconds(one) * static_cast<double>(move.executions);
  }
  for (const ProductWork& work : found.products) {
    auto runs = static_cast<double>(rules().regions[rules().facts[work.op].region].executions);
    DType dtype = rules().types[rules().ops[work.op].operands[0]].dtype;
    double rate = figures.matrix_rate(meshard::to_string(dtype));
    if (rate > 0) time.compute_seconds += runs * work.flops / rate;
    memory_bytes += runs * work.memory_bytes;
  }
  for (const auto* numbers : {&state_->arguments, &state_->results})
    for (const std::optional<std::size_t>& number : *numbers) {
      if (!number) continue;
      std::optional<Sharding> sharding = values[*number].sharding(mesh);
      memory_bytes += static_cast<double>(rules().types[*number].bytes()) /
                      static_cast<double>(sharding ? sharding->num_tiles() : 1);
    }
  if (figures.memory_bandwidth > 0) time.memory_seconds = memory_bytes / figures.memory_bandwidth;
  return time;
}

double ModuleProgram::communication(
    const Mesh& mesh, const std::vector<std::optional<PartitionSpec>>& arguments,
    const std::vector<std::optional<PartitionSpec>>& results) const {
  double bytes = 0;
  for (const PredictedMove& move :
       predict_moves(mesh, rules(), shardings(mesh, arguments, results)).moves)
    bytes += static_cast<double>(move.total_bytes());
  return bytes;
}

}  // namespace meshard
