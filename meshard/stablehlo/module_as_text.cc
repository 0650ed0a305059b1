#include "meshard/stablehlo/module_as_text.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/bytecode.h"
#include "meshard/stablehlo/internal/bytecode_ops.h"
#include "meshard/stablehlo/internal/bytecode_values.h"
#include "meshard/stablehlo/internal/versioned_ops.h"
#include "meshard/stablehlo/jax_export.h"
#include "meshard/stablehlo/types.h"

namespace meshard::stablehlo {
namespace {

// Regions in regions, and locations in locations. The limit keeps damaged bytes from exhausting the
// stack.
constexpr int kDeepestText = 200;

// The values of one isolated op, by number. A region has a range of its own after those of the
// regions around it.
struct NamedValues {
  struct Value {
    std::string name;  // empty: not defined yet
    std::uint64_t type = 0;
  };
  std::vector<Value> values = {};
  std::vector<std::size_t> next = {};      // by region
  std::size_t results = 0, arguments = 0;  // how many have names
};

class ModuleTextWriter {
 public:
  explicit ModuleTextWriter(std::string_view bytes)
      : bytecode_(bytes), values_(bytecode_), size_(bytes.size()) {}

  std::string write() {
    ByteCursor cursor(bytecode_.operations());
    std::vector<BytecodeArgument> arguments;
    NamedValues none;
    for (std::size_t left = bytecode_.read_block(cursor, arguments); left > 0; --left)
      write_op(cursor, none, 0, false);
    return cat(out_, locations_);
  }

 private:
  // An op with its attributes by name: its properties, and what else it has.
  struct Op : BytecodeOp {
    BytecodeValues::Dictionary inherent;
    std::string others;  // the text of the others, `{a = 1}`
  };

  void indent(int depth) { out_.append(2 * static_cast<std::size_t>(depth), ' '); }
  void end_line(std::uint64_t location) { append(out_, cat(" ", located(location), "\n")); }

  Op read_op(ByteCursor& cursor) {
    Op op{bytecode_.read_op(cursor), {}, {}};
    std::vector<OpProperty> properties = properties_of(op);
    if (!op.properties.empty()) {
      ByteCursor numbers(op.properties);
      for (const OpProperty& each : properties) {
        if (numbers.at_end() && each.optional) break;
        std::uint64_t number = numbers.number();
        if (each.optional && (number & 1) == 0) continue;
        op.inherent.emplace_back(each.name, each.optional ? number >> 1 : number);
      }
      // A version of an op of the versioned dialect has the same properties forever.
      if (!numbers.at_end() && !op.name.starts_with("vhlo."))
        fail_bytecode(cat("the op `", op.name, "` has more properties than are known"));
    }
    if (op.attributes) take_attributes(op, properties);
    return op;
  }

  // Without properties, all attributes are in the dictionary.
  void take_attributes(Op& op, const std::vector<OpProperty>& properties) {
    bool all_others = true;
    BytecodeValues::Dictionary others;
    for (auto& [name, attribute] : values_.dictionary(*op.attributes)) {
      const bool is_inherent =
          op.properties.empty() &&
          std::ranges::find(properties, name, &OpProperty::name) != properties.end();
      all_others = all_others && !is_inherent;
      (is_inherent ? op.inherent : others).emplace_back(name, attribute);
    }
    op.others =
        all_others ? values_.dictionary_text(*op.attributes) : values_.dictionary_text(others);
  }

  static std::optional<std::uint64_t> inherent(const Op& op, std::string_view name) {
    for (const auto& [key, attribute] : op.inherent)
      if (key == name) return attribute;
    return std::nullopt;
  }

  std::string inherent_text(const Op& op, std::string_view name) {
    std::optional<std::uint64_t> attribute = inherent(op, name);
    return attribute ? values_.text(*attribute) : std::string();
  }

  // `#loc7`, which is defined after the module.
  std::string located(std::uint64_t location) {
    define(location, 0);
    return cat("loc(#loc", location, ")");
  }

  void define(std::uint64_t location, int depth) {
    if (!defined_.insert(location).second) return;
    std::string text = depth > kDeepestText
                           ? "loc(unknown)"
                           : values_.location_text(location, [&](std::uint64_t nested) {
                               define(nested, depth + 1);
                               return cat("#loc", nested);
                             });
    append(locations_, cat("#loc", location, " = ", text, "\n"));
  }

  void write_op(ByteCursor& cursor, NamedValues& scope, int depth, bool in_function) {
    if (depth > kDeepestText) fail_bytecode("regions are nested too deeply");
    const Op op = read_op(cursor);
    if (op.name == "builtin.module") return write_module(op, cursor, depth);
    if (op.name == "func.func" || op.name == "vhlo.func_v1")
      return write_function(op, cursor, depth);
    if (op.name == "sdy.mesh") return write_mesh(op, depth);
    indent(depth);
    const std::string types = types_of(op, scope);
    append(out_, cat(operands_and_name(op, scope, in_function), properties_text(op)));
    // The regions of an isolated op are one section.
    std::optional<ByteCursor> inner;
    NamedValues own{.results = scope.results, .arguments = scope.arguments};
    if (op.isolated && op.regions > 0) inner.emplace(read_nested_section(cursor));
    for (std::size_t i = 0; i < op.regions; ++i) {
      out_ += i == 0 ? " ({\n" : ", {\n";
      write_region(inner ? *inner : cursor, inner ? own : scope, depth + 1);
      indent(depth);
      out_ += i + 1 == op.regions ? "})" : "}";
    }
    if (!op.others.empty()) append(out_, cat(" ", op.others));
    out_ += types;
    end_line(op.location);
  }

  std::string mnemonic(const Op& op, bool in_function) const {
    if (!op.name.starts_with("vhlo.")) return std::string(op.name);
    std::string_view name = unversioned_name(op.name);
    if (name == "call" || (name == "return" && in_function)) return cat("func.", name);
    return cat("stablehlo.", name);
  }

  const NamedValues::Value& operand(const Op& op, const NamedValues& scope, ByteCursor& numbers) {
    std::uint64_t number = numbers.number();
    if (number >= scope.values.size() || scope.values[number].name.empty())
      fail_bytecode(cat("`", op.name, "` uses a value that is not defined"));
    return scope.values[number];
  }

  // `%3:2 = "stablehlo.while"(%1, %2)`. Defines the results.
  std::string operands_and_name(const Op& op, NamedValues& scope, bool in_function) {
    std::string operands;
    ByteCursor numbers = op.operands;
    for (std::size_t i = 0; i < op.num_operands; ++i)
      append(operands, cat(i > 0 ? ", " : "", operand(op, scope, numbers).name));
    std::string out;
    if (op.results > 0) {
      std::string name = cat("%", scope.results++);
      ByteCursor types = op.result_types;
      for (std::size_t i = 0; i < op.results; ++i)
        add_value(scope, op.results == 1 ? name : cat(name, "#", i), types.number());
      out = op.results == 1 ? cat(name, " = ") : cat(name, ":", op.results, " = ");
    }
    return cat(out, "\"", mnemonic(op, in_function), "\"(", operands, ")");
  }

  void add_value(NamedValues& scope, std::string name, std::uint64_t type) {
    if (scope.next.empty() || scope.next.back() >= scope.values.size())
      fail_bytecode("a region has more values than it says");
    scope.values[scope.next.back()++] = {std::move(name), type};
  }

  std::string properties_text(const Op& op) {
    std::string out;
    if (op.name.starts_with("vhlo.")) {
      out = versioned_properties(unversioned_name(op.name), op.inherent, values_);
    } else if (!op.inherent.empty()) {
      out = values_.dictionary_text(op.inherent);
      out = out.substr(1, out.size() - 2);
    }
    return out.empty() ? out : cat(" <{", out, "}>");
  }

  // ` : (tensor<f32>) -> tensor<f32>`
  std::string types_of(const Op& op, const NamedValues& scope) {
    std::string out = " : (";
    ByteCursor numbers = op.operands;
    for (std::size_t i = 0; i < op.num_operands; ++i)
      append(out,
             cat(i > 0 ? ", " : "", values_.known_type_text(operand(op, scope, numbers).type)));
    std::string results;
    ByteCursor types = op.result_types;
    for (std::size_t i = 0; i < op.results; ++i)
      append(results, cat(i > 0 ? ", " : "", values_.known_type_text(types.number())));
    return op.results == 1 ? cat(out, ") -> ", results) : cat(out, ") -> (", results, ")");
  }

  // The single block of a region.
  void write_region(ByteCursor& cursor, NamedValues& scope, int depth) {
    const std::size_t begin = scope.values.size();
    std::size_t ops = enter(cursor, scope);
    if (!block_.empty()) {
      indent(depth - 1);
      out_ += "^bb0(";
      for (std::size_t i = 0; i < block_.size(); ++i)
        append(out_,
               cat(i > 0 ? ", " : "", argument_text(scope.values[begin + i].name, block_[i])));
      out_ += "):\n";
    }
    for (; ops > 0; --ops) write_op(cursor, scope, depth, false);
    leave(scope, begin);
  }

  std::string argument_text(const std::string& name, const BytecodeArgument& argument) {
    return cat(name, ": ", values_.known_type_text(argument.type),
               argument.location ? cat(" ", located(*argument.location)) : std::string());
  }

  // Reads the head of a region with one block, whose arguments are then in `block_`, and returns
  // the number of its ops.
  std::size_t enter(ByteCursor& cursor, NamedValues& scope) {
    block_.clear();
    std::uint64_t blocks = cursor.number();
    if (blocks != 1) fail_bytecode(cat("a region has ", blocks, " blocks instead of one"));
    std::uint64_t values = cursor.number();
    if (values > size_) fail_bytecode("a region has too many values");
    scope.next.push_back(scope.values.size());
    scope.values.resize(scope.values.size() + static_cast<std::size_t>(values));
    std::size_t ops = bytecode_.read_block(cursor, block_);
    for (const BytecodeArgument& argument : block_)
      add_value(scope, cat("%arg", scope.arguments++), argument.type);
    return ops;
  }

  static void leave(NamedValues& scope, std::size_t begin) {
    scope.next.pop_back();
    scope.values.resize(begin);
  }

  void write_module(const Op& op, ByteCursor& cursor, int depth) {
    if (op.regions != 1 || !op.isolated) fail_bytecode("a module has no region");
    indent(depth);
    out_ += "module";
    if (std::string name = inherent_text(op, "sym_name"); !name.empty()) add_symbol(name);
    if (!op.others.empty()) append(out_, cat(" attributes ", op.others));
    out_ += " {\n";
    ByteCursor inner(read_nested_section(cursor));
    NamedValues scope;
    for (std::size_t ops = enter(inner, scope); ops > 0; --ops)
      write_op(inner, scope, depth + 1, false);
    indent(depth);
    out_ += "}";
    end_line(op.location);
  }

  void write_mesh(const Op& op, int depth) {
    std::optional<std::uint64_t> mesh = inherent(op, "mesh");
    if (!mesh) fail_bytecode("a mesh has no axes");
    indent(depth);
    out_ += "sdy.mesh";
    add_symbol(inherent_text(op, "sym_name"));
    append(out_, cat(" = ", values_.mesh("", *mesh).text));
    if (!op.others.empty()) append(out_, cat(" ", op.others));
    end_line(op.location);
  }

  void add_symbol(std::string_view name) {
    out_ += ' ';
    append_symbol(out_, name);
  }

  void write_function(const Op& op, ByteCursor& cursor, int depth) {
    std::optional<std::uint64_t> type = inherent(op, "function_type");
    if (!type || op.regions != 1 || !op.isolated) fail_bytecode("a function has no type or body");
    auto [inputs, outputs] = values_.function_type(*type);
    indent(depth);
    out_ += "func.func";
    if (std::string visibility = inherent_text(op, "sym_visibility"); !visibility.empty())
      append(out_, cat(" ", visibility));
    add_symbol(inherent_text(op, "sym_name"));
    ByteCursor inner(read_nested_section(cursor));
    NamedValues scope;
    std::size_t ops = enter(inner, scope);
    if (block_.size() != inputs.size())
      fail_bytecode("a function has other arguments than its type");
    std::vector<std::string> attributes = boundary_attributes(op, "arg_attrs", inputs.size());
    out_ += "(";
    for (std::size_t i = 0; i < inputs.size(); ++i)
      append(out_,
             cat(i > 0 ? ", " : "", scope.values[i].name, ": ", values_.known_type_text(inputs[i]),
                 attributes[i].empty() ? "" : " ", attributes[i],
                 block_[i].location ? cat(" ", located(*block_[i].location)) : ""));
    out_ += ") -> (";
    attributes = boundary_attributes(op, "res_attrs", outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      append(out_, cat(i > 0 ? ", " : "", values_.known_type_text(outputs[i]),
                       attributes[i].empty() ? "" : " ", attributes[i]));
    out_ += ")";
    if (!op.others.empty()) append(out_, cat(" attributes ", op.others));
    out_ += " {\n";
    for (; ops > 0; --ops) write_op(inner, scope, depth + 1, true);
    indent(depth);
    out_ += "}";
    end_line(op.location);
  }

  // The dictionaries of the arguments or results, by position.
  std::vector<std::string> boundary_attributes(const Op& op, std::string_view name,
                                               std::size_t count) {
    std::vector<std::string> texts(count);
    if (std::optional<std::uint64_t> all = inherent(op, name)) {
      std::vector<std::uint64_t> lists = values_.array(*all);
      for (std::size_t i = 0; i < std::min(lists.size(), count); ++i)
        texts[i] = values_.dictionary_text(lists[i]);
    }
    return texts;
  }

  Bytecode bytecode_;
  BytecodeValues values_;
  std::size_t size_;
  std::string out_, locations_;
  std::set<std::uint64_t> defined_;      // locations
  std::vector<BytecodeArgument> block_;  // of the block that was entered last
};

}  // namespace

Result<std::string> module_as_text(std::string_view module) {
  if (!Bytecode::is_bytecode(module)) return std::string(module);
  return caught([&] { return ModuleTextWriter(module).write(); });
}

Result<std::string> program_as_text(std::string_view file) {
  if (!is_jax_export(file)) return module_as_text(file);
  MESHARD_ASSIGN_OR_RETURN(JaxExport exported, read_jax_export(file));
  if (exported.platforms.size() > 1)
    return Error(ErrorCode::kUnimplemented,
                 cat("[read_module] the program was exported for ", join(exported.platforms, ", "),
                     ": export it for one platform"));
  return module_as_text(exported.module);
}

}  // namespace meshard::stablehlo
