#include "meshard/stablehlo/flat_module.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/unsharded_text.h"
#include "meshard/stablehlo/module_reader.h"

namespace meshard::stablehlo {

struct FlatModule::State {
  explicit State(Module parsed) : module(std::move(parsed)) {}

  Module module;
  const ModuleFunction* main = nullptr;
  std::vector<FlatOp> ops;
  std::vector<FlatValue> arguments;
  std::vector<std::string> results;
  std::unordered_map<std::string, std::string> types;
  // By the value's name, of constants.
  std::unordered_map<std::string, std::size_t> constants;
};

namespace {

constexpr int kDeepestCall = 100;
constexpr std::size_t kMostOps = 200'000;

// The names of values in a function's text, and what they are in the program.
using Names = std::unordered_map<std::string, std::string>;

// Renames the values of a text. Those that have no name yet are the op's own: they get a prefix, or
// keep their name if that is empty.
std::string renamed(std::string_view text, const Names& names, std::string_view prefix = {},
                    std::vector<std::string>* used = nullptr) {
  std::string out;
  std::size_t done = 0;
  for_each_reference(text, [&](std::size_t begin, std::size_t end) {
    std::string name(text.substr(begin, end - begin));
    auto found = names.find(name);
    out.append(text.substr(done, begin - done));
    done = end;
    if (found == names.end()) {
      out.append(prefix.empty() ? name : cat(prefix, "_", name.substr(1)));
      return;
    }
    out.append(found->second);
    if (used && std::ranges::find(*used, found->second) == used->end())
      used->push_back(found->second);
  });
  return out.append(text.substr(done));
}

bool has_sharding(const ModuleFunction& function) {
  const auto given = [](const ModuleBoundary& value) {
    return !find_attribute(value.attributes, "sdy.sharding").empty() ||
           !find_attribute(value.attributes, "mhlo.sharding").empty();
  };
  return std::ranges::any_of(function.arguments, given) ||
         std::ranges::any_of(function.results, given);
}

// The functions that text names: `@f`.
std::vector<std::string> named_functions(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    std::size_t end = text.find_first_of(" (){}<>,:\n\"", at + 1);
    names.emplace_back(text.substr(at + 1, std::min(end, text.size()) - at - 1));
  }
  return names;
}

FlatKind kind_of(const ModuleOp& op) {
  if (only_places(op)) return FlatKind::kComputed;
  std::string_view name = op.mnemonic;
  if (name == "stablehlo.constant") return FlatKind::kConstant;
  if (name == "stablehlo.rng" || name == "stablehlo.rng_bit_generator") return FlatKind::kRandom;
  if (name == "sdy.manual_computation" || op.symbol == "SPMDFullToShardShape" ||
      op.symbol == "SPMDShardToFullShape")
    return FlatKind::kManual;
  if (name.starts_with("sdy.") && name != "sdy.return" && name != "sdy.sharding_group")
    return FlatKind::kDevices;
  constexpr std::string_view kOthers[] = {"stablehlo.partition_id", "stablehlo.replica_id",
                                          "stablehlo.send",         "stablehlo.recv",
                                          "stablehlo.infeed",       "stablehlo.outfeed",
                                          "stablehlo.after_all",    "stablehlo.create_token"};
  bool on_devices = std::ranges::find(kOthers, name) != std::end(kOthers) ||
                    is_collective_op(name.substr(name.find('.') + 1));
  return on_devices ? FlatKind::kDevices : FlatKind::kComputed;
}

// Replaces calls by the ops of their functions.
class Flattener {
 public:
  explicit Flattener(FlatModule::State& state) : state_(state) {}

  Result<void> run() {
    const ModuleFunction* main = state_.module.function("main");
    if (!main || !main->op || main->op->regions.empty())
      return Error(ErrorCode::kDataLoss, "[flat_module] the module has no function `main`");
    state_.main = main;
    const ModuleRegion& body = main->op->regions[0];
    Names names;
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
      const ModuleVariable& argument = state_.module.variable(body.arguments[i]);
      std::string name = cat("%a", i);
      names.emplace(argument.name, name);
      state_.arguments.push_back({name, std::string(argument.type)});
      state_.types.emplace(name, argument.type);
    }
    MESHARD_ASSIGN_OR_RETURN(state_.results, add_ops(body, names, "", 0));
    if (state_.results.size() != main->results.size() ||
        state_.arguments.size() != main->arguments.size())
      return Error(ErrorCode::kDataLoss,
                   cat("[flat_module] `main` has ", state_.arguments.size(), " arguments and ",
                       state_.results.size(), " results, but its signature ",
                       main->arguments.size(), " and ", main->results.size()));
    mark_used();
    return {};
  }

 private:
  // Adds the ops of a function. @return the names of the values that it returns
  Result<std::vector<std::string>> add_ops(const ModuleRegion& body, Names& names,
                                           const std::string& place, int depth) {
    if (depth > kDeepestCall)
      return Error(ErrorCode::kUnimplemented, "[flat_module] calls are nested too deeply");
    std::vector<std::string> returned;
    for (const ModuleOp& op : body.ops) {
      if (op.mnemonic == "func.return") return references(op.text_before_location(), names);
      const ModuleFunction* callee =
          op.mnemonic == "func.call" ? state_.module.function(op.symbol) : nullptr;
      if (callee && callee->op && !callee->op->regions.empty() && !has_sharding(*callee))
        MESHARD_RETURN_IF_ERROR(add_call(op, *callee, names, place, depth));
      else
        MESHARD_RETURN_IF_ERROR(add_op(op, names, place));
    }
    return returned;
  }

  void mark_used() {
    std::set<std::string> used(state_.results.begin(), state_.results.end());
    for (std::size_t i = state_.ops.size(); i-- > 0;) {
      FlatOp& op = state_.ops[i];
      op.is_used = std::ranges::any_of(
          op.results, [&](const FlatValue& result) { return used.contains(result.name); });
      if (op.is_used) used.insert(op.operands.begin(), op.operands.end());
    }
  }

  // What the references in a text are in the program, in order.
  static Result<std::vector<std::string>> references(std::string_view text, const Names& names) {
    std::vector<std::string> found;
    std::string unknown;
    for_each_reference(text, [&](std::size_t begin, std::size_t end) {
      auto known = names.find(std::string(text.substr(begin, end - begin)));
      if (known == names.end())
        unknown = text.substr(begin, end - begin);
      else
        found.push_back(known->second);
    });
    if (!unknown.empty())
      return Error(ErrorCode::kDataLoss, cat("[flat_module] ", unknown, " is not defined before ",
                                             text.substr(0, text.find('\n'))));
    return found;
  }

  // The text behind `%3:2 = `, and the names of the results before it.
  static std::string_view after_results(const ModuleOp& op) {
    std::string_view text = op.text_before_location();
    return op.results.empty() ? text : text.substr(text.find('=') + 1);
  }

  std::string place_of(const ModuleOp& op, const std::string& place) const {
    std::string own = state_.module.source_line(op.location);
    if (!own.empty() || !place.empty()) return own.empty() ? place : own;
    std::string_view before = state_.module.text().substr(0, state_.module.range(op.text).begin);
    return cat("line ", std::count(before.begin(), before.end(), '\n') + 1, " of the module");
  }

  Result<void> add_call(const ModuleOp& op, const ModuleFunction& callee, Names& names,
                        const std::string& place, int depth) {
    MESHARD_ASSIGN_OR_RETURN(std::vector<std::string> operands,
                             references(after_results(op), names));
    const ModuleRegion& body = callee.op->regions[0];
    if (operands.size() != body.arguments.size())
      return Error(ErrorCode::kDataLoss,
                   cat("[flat_module] a call of @", callee.name, " has ", operands.size(),
                       " arguments, but the function has ", body.arguments.size()));
    Names inner;
    for (std::size_t i = 0; i < operands.size(); ++i)
      inner.emplace(state_.module.variable(body.arguments[i]).name, operands[i]);
    MESHARD_ASSIGN_OR_RETURN(std::vector<std::string> returned,
                             add_ops(body, inner, place_of(op, place), depth + 1));
    if (returned.size() != op.results.size())
      return Error(ErrorCode::kDataLoss,
                   cat("[flat_module] @", callee.name, " returns ", returned.size(),
                       " values, but a call has ", op.results.size()));
    define(op, names, [&](std::size_t i, std::size_t, std::size_t) { return returned[i]; });
    return {};
  }

  // Gives the results of an op their names: name(result, group, position in the group), where an op
  // with `%a, %b:2 = ` has two groups.
  template <class Name>
  void define(const ModuleOp& op, Names& names, const Name& name) {
    std::size_t group = 0, in_group = 0;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      std::string_view written = state_.module.variable(op.results[i]).name;
      bool begins = i == 0 || state_.module.variable(op.results[i - 1]).name != written;
      if (begins && i > 0) ++group;
      in_group = begins ? 0 : in_group + 1;
      std::string given = name(i, group, in_group);
      if (begins) names[std::string(written)] = given;
      names[cat(written, "#", in_group)] = std::move(given);
    }
  }

  Result<void> add_op(const ModuleOp& op, Names& names, const std::string& place) {
    if (state_.ops.size() >= kMostOps)
      return Error(ErrorCode::kUnimplemented,
                   cat("[flat_module] the program has more than ", kMostOps, " ops"));
    FlatOp made;
    made.mnemonic = op.mnemonic;
    made.op = &op;
    const std::string prefix = cat("%v", state_.ops.size());
    std::string unsharded = unsharded_text(state_.module, op);
    std::string_view rest = unsharded;
    if (!op.results.empty()) rest.remove_prefix(rest.find('=') + 1);
    // Names that the op itself defines are not known yet.
    std::string text = renamed(after_results(op), names, prefix, &made.operands);
    std::string alone = renamed(rest, names, prefix);
    std::string head = define_results(op, names, prefix, made);
    made.text = cat(head, text);
    made.unsharded = cat(head, alone);
    made.place = place_of(op, place);
    made.kind = whole_kind(op);
    if (made.kind == FlatKind::kConstant && !made.results.empty())
      state_.constants.emplace(made.results[0].name, state_.ops.size());
    state_.ops.push_back(std::move(made));
    return {};
  }

  // Names the results. @return `%v3:2 =`
  std::string define_results(const ModuleOp& op, Names& names, const std::string& prefix,
                             FlatOp& made) {
    std::map<std::size_t, std::size_t> groups;  // their sizes
    std::vector<std::string_view> written;
    for (int result : op.results) written.push_back(state_.module.variable(result).name);
    std::size_t number = 0;
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (i > 0 && written[i] != written[i - 1]) ++number;
      ++groups[number];
    }
    define(op, names, [&](std::size_t i, std::size_t group, std::size_t position) {
      std::string name = groups.size() > 1 ? cat(prefix, "g", group) : prefix;
      if (groups[group] > 1) name = cat(name, "#", position);
      std::string type(state_.module.variable(op.results[i]).type);
      made.results.push_back({name, type});
      state_.types.emplace(name, std::move(type));
      return name;
    });
    std::vector<std::string> heads;
    for (const auto& [group, count] : groups)
      heads.push_back(
          cat(prefix, groups.size() > 1 ? cat("g", group) : "", count > 1 ? cat(":", count) : ""));
    return heads.empty() ? std::string() : cat(join(heads, ", "), " =");
  }

  // The kind of an op with the ops in its regions and in the functions that it names.
  FlatKind whole_kind(const ModuleOp& op) {
    FlatKind found = kind_of(op);
    const auto join_kind = [&](FlatKind inner) {
      if (inner != FlatKind::kComputed && inner != FlatKind::kConstant &&
          found == FlatKind::kComputed)
        found = inner;
    };
    for (const ModuleRegion& region : op.regions)
      for (const ModuleOp& inner : region.ops) join_kind(whole_kind(inner));
    if (op.text.find('@') != std::string_view::npos && op.regions.empty())
      for (const std::string& name : named_functions(op.text))
        if (const ModuleFunction* function = state_.module.function(name))
          if (function->op) join_kind(kind_of_function(*function));
    return found;
  }

  FlatKind kind_of_function(const ModuleFunction& function) {
    auto [known, is_new] = function_kinds_.emplace(function.name, FlatKind::kComputed);
    if (is_new) {
      FlatKind kind = whole_kind(*function.op);
      function_kinds_[function.name] = kind;
      return kind;
    }
    return known->second;
  }

  FlatModule::State& state_;
  std::map<std::string, FlatKind> function_kinds_;
};

bool is_taken(const FlatOp& op) {
  return op.is_used && op.kind != FlatKind::kComputed && op.kind != FlatKind::kConstant;
}

// ---- Writing.

// The aliases of attributes, and the resources.
std::string aliases_of(std::string_view text) {
  std::string found;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.starts_with('#') && !line.starts_with("#loc") && !line.starts_with("#-}"))
      append(found, cat(line, "\n"));
    at = end + 1;
  }
  return found;
}

std::string_view resources_of(std::string_view text) {
  std::size_t begin = text.rfind("{-#");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

// A module for one device.
class OneDeviceWriter {
 public:
  explicit OneDeviceWriter(const FlatModule::State& state) : state_(state) {}

  void take(std::string name, std::string_view type) {
    arguments_.push_back(cat(name, ": ", type));
  }
  void add(std::string text) {
    need_functions(text);
    append(body_, cat("    ", text, "\n"));
  }
  void give(const std::string& name, std::string_view type) {
    results_.push_back(name);
    types_.emplace_back(type);
  }
  std::string write() const {
    std::string_view text = state_.module.text();
    return cat(aliases_of(text), "module @check {\n", functions_, "  func.func public @main(",
               join(arguments_, ", "), ") -> (", join(types_, ", "), ") {\n", body_, "    return ",
               join(results_, ", "), results_.empty() ? "" : " : ", join(types_, ", "),
               "\n  }\n}\n", resources_of(text));
  }

 private:
  void need_functions(std::string_view text) {
    if (text.find('@') == std::string_view::npos) return;
    for (const std::string& name : named_functions(text)) {
      const ModuleFunction* function = state_.module.function(name);
      if (!function || !function->op || function == state_.main || !known_.insert(name).second)
        continue;
      std::string written = unsharded_text(state_.module, *function->op);
      append(functions_, cat("  ", written, "\n"));
      need_functions(written);
    }
  }

  const FlatModule::State& state_;
  std::vector<std::string> arguments_, results_, types_;
  std::set<std::string> known_;
  std::string functions_, body_;
};

// The op on one device with other operands.
std::string with_operands(const FlatOp& op, const Names& names) {
  const std::size_t head = op.results.empty() ? 0 : op.unsharded.find('=') + 1;
  return cat(op.unsharded.substr(0, head),
             renamed(std::string_view(op.unsharded).substr(head), names));
}

}  // namespace

Result<FlatModule> FlatModule::make(std::string text) {
  MESHARD_ASSIGN_OR_RETURN(Module module, Module::parse(std::move(text)));
  return caught([&]() -> Result<FlatModule> {
    auto state = std::make_shared<State>(std::move(module));
    MESHARD_RETURN_IF_ERROR(Flattener(*state).run());
    return FlatModule(std::move(state));
  });
}

const Module& FlatModule::module() const { return state_->module; }
const std::vector<FlatOp>& FlatModule::ops() const { return state_->ops; }
const std::vector<FlatValue>& FlatModule::arguments() const { return state_->arguments; }
const std::vector<std::string>& FlatModule::results() const { return state_->results; }
std::string_view FlatModule::type_of(const std::string& name) const {
  return state_->types.at(name);
}

std::string FlatModule::with_results(std::span<const std::string> more) const {
  const ModuleFunction& main = *state_->main;
  std::vector<std::string> arguments, results, types, names = state_->results;
  for (std::size_t i = 0; i < state_->arguments.size(); ++i)
    arguments.push_back(cat(state_->arguments[i].name, ": ", state_->arguments[i].type, " ",
                            without_placement(main.arguments[i].dictionary, true)));
  for (std::size_t i = 0; i < names.size(); ++i) {
    types.emplace_back(state_->types.at(names[i]));
    results.push_back(cat(types.back(), " ", main.results[i].dictionary));
  }
  for (const std::string& name : more) {
    names.push_back(name);
    types.push_back(state_->types.at(name));
    results.push_back(types.back());
  }
  std::string body;
  for (const FlatOp& op : state_->ops) append(body, cat("    ", op.text, "\n"));
  std::string_view text = state_->module.text();
  TextRange range = state_->module.range(main.op->text);
  return cat(text.substr(0, range.begin), "func.func public @main(", join(arguments, ", "),
             ") -> (", join(results, ", "), ") {\n", body, "    return ", join(names, ", "),
             names.empty() ? "" : " : ", join(types, ", "), "\n  }", text.substr(range.end));
}

std::vector<std::string> FlatModule::given() const {
  std::vector<std::string> names;
  for (const FlatOp& op : state_->ops)
    if (is_taken(op))
      for (const FlatValue& result : op.results) names.push_back(result.name);
  return names;
}

std::string FlatModule::unsharded() const {
  OneDeviceWriter writer(*state_);
  for (const FlatValue& argument : state_->arguments) writer.take(argument.name, argument.type);
  Names taken;
  for (const std::string& name : given()) {
    const std::string& argument = taken.emplace(name, cat("%given", taken.size())).first->second;
    writer.take(argument, state_->types.at(name));
  }
  for (const FlatOp& op : state_->ops)
    if (op.is_used && !is_taken(op)) writer.add(with_operands(op, taken));
  for (const std::string& name : state_->results)
    writer.give(renamed(name, taken), state_->types.at(name));
  return writer.write();
}

SeparateOps FlatModule::separate(std::span<const std::size_t> ops) const {
  OneDeviceWriter writer(*state_);
  SeparateOps made;
  Names taken;
  std::set<std::size_t> constants;
  const auto take = [&](const std::string& operand) {
    if (auto known = state_->constants.find(operand); known != state_->constants.end()) {
      if (constants.insert(known->second).second) writer.add(state_->ops[known->second].unsharded);
    } else if (auto [at, is_new] = taken.emplace(operand, cat("%in", taken.size())); is_new) {
      writer.take(at->second, state_->types.at(operand));
      made.arguments.push_back(operand);
    }
  };
  for (std::size_t number : ops) std::ranges::for_each(state_->ops[number].operands, take);
  for (std::size_t number : ops) {
    const FlatOp& op = state_->ops[number];
    if (op.kind != FlatKind::kConstant || constants.insert(number).second)
      writer.add(with_operands(op, taken));
    for (const FlatValue& result : op.results) {
      writer.give(result.name, result.type);
      made.results.push_back(result.name);
    }
  }
  made.text = writer.write();
  return made;
}

}  // namespace meshard::stablehlo
