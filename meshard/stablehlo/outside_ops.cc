#include "meshard/stablehlo/outside_ops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/bytecode.h"
#include "meshard/stablehlo/internal/bytecode_values.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {
namespace {

// Locations in locations, and functions in functions. The limit keeps damaged input from exhausting
// the stack.
constexpr int kDeepestAlias = 50;

constexpr std::string_view kOutsideNames[] = {"custom_call", "infeed", "outfeed", "recv", "send"};

// The name of such an op without its dialect and version (`vhlo.custom_call_v1`); empty for others.
std::string_view outside_name(std::string_view mnemonic) {
  bool is_vhlo = mnemonic.starts_with("vhlo.");
  if (!is_vhlo && !mnemonic.starts_with("stablehlo.")) return "";
  mnemonic.remove_prefix(mnemonic.find('.') + 1);
  if (is_vhlo) mnemonic = mnemonic.substr(0, mnemonic.rfind("_v"));
  auto found = std::ranges::find(kOutsideNames, mnemonic);
  return found == std::end(kOutsideNames) ? std::string_view() : *found;
}

// The ops that were found, and who calls the functions that they are in. An op of a function that
// JAX compiled once for several calls has no place of its own: it gets that of the first call.
class FoundOps {
 public:
  void enter(std::string function) { function_ = std::move(function); }
  void call(const std::string& callee, std::string place) {
    calls_.try_emplace(callee, Call{function_, std::move(place)});
  }
  void add(OutsideOp op) { ops_.emplace_back(function_, std::move(op)); }

  std::vector<OutsideOp> result() && {
    std::vector<OutsideOp> all;
    for (auto& [function, op] : ops_) {
      const std::string* in = &function;
      for (int depth = 0; op.place.empty() && depth < kDeepestAlias; ++depth) {
        auto found = calls_.find(*in);
        if (found == calls_.end()) break;
        op.place = found->second.place;
        in = &found->second.caller;
      }
      if (std::ranges::find(all, op) == all.end()) all.push_back(std::move(op));
    }
    return all;
  }

 private:
  struct Call {
    std::string caller, place;
  };
  std::string function_;
  std::map<std::string, Call, std::less<>> calls_;
  std::vector<std::pair<std::string, OutsideOp>> ops_;
};

class BytecodeOutsideOps {
 public:
  explicit BytecodeOutsideOps(std::string_view bytes) : bytecode_(bytes), values_(bytecode_) {}

  std::vector<OutsideOp> run() {
    const std::vector<std::string>& names = bytecode_.op_names();
    if (std::ranges::none_of(names, [](const auto& name) { return !outside_name(name).empty(); }))
      return {};
    for_each_op(bytecode_, [&](const BytecodeOp& op) { add(op); });
    return std::move(found_).result();
  }

 private:
  void add(const BytecodeOp& op) {
    if (std::string_view name = outside_name(op.name); !name.empty())
      found_.add({std::string(name), name == "custom_call" ? property(op, 2) : std::string(),
                  values_.location_place(op.location)});
    // In vhlo, the name comes after arg_attrs, function_type and res_attrs.
    if (op.name == "vhlo.func_v1") found_.enter(property(op, 3));
    if (op.name == "vhlo.call_v1")
      found_.call(property(op, 0), values_.location_place(op.location));
  }

  // The text of the property with this number. Properties are stored in order of name: api_version,
  // backend_config, call_target_name, ...
  std::string property(const BytecodeOp& op, int number) {
    if (op.properties.empty()) {
      if (op.attributes)
        for (const auto& [name, value] : values_.dictionary(*op.attributes))
          if (name == "call_target_name") return values_.text(value);
      return "";
    }
    ByteCursor properties(op.properties);
    for (; number > 0; --number) properties.number();
    return values_.text(properties.number());
  }

  Bytecode bytecode_;
  BytecodeValues values_;
  FoundOps found_;
};

std::vector<OutsideOp> outside_ops_of_text(const Module& module) {
  FoundOps found;
  for_each_op(module.ops(), [&](const ModuleOp& op) {
    if (op.mnemonic == "func.func") found.enter(op.symbol);
    if (op.mnemonic == "func.call") found.call(op.symbol, module.source_line(op.location));
    std::string_view name = outside_name(op.mnemonic);
    if (name.empty()) return;
    OutsideOp one{std::string(name), {}, module.source_line(op.location)};
    if (name == "custom_call")
      one.target = op.symbol.empty() ? plain_text(find_attribute(op.attributes, "call_target_name"))
                                     : op.symbol;
    found.add(std::move(one));
  });
  return std::move(found).result();
}

}  // namespace

Result<std::vector<OutsideOp>> outside_ops(std::string_view module) {
  return caught([&]() -> Result<std::vector<OutsideOp>> {
    if (Bytecode::is_bytecode(module)) return BytecodeOutsideOps(module).run();
    MESHARD_ASSIGN_OR_RETURN(Module parsed, Module::parse(std::string(module)));
    return outside_ops_of_text(parsed);
  });
}

}  // namespace meshard::stablehlo
