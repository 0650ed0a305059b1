#include "meshard/stablehlo/custom_calls.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/bytecode.h"
#include "meshard/stablehlo/internal/text_edits.h"

namespace meshard::stablehlo {
namespace {

// A tensor type as its text has it: `16x4xf32`.
struct TensorText {
  std::vector<std::string> sizes;
  std::string element;

  std::string to_string() const {
    return cat("tensor<", join(sizes, "x"), sizes.empty() ? "" : "x", element, ">");
  }
  TensorText with(std::string other) const { return {sizes, std::move(other)}; }
  TensorText leading(std::size_t count) const {
    return {{sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(count)}, element};
  }
  bool is_complex() const { return element.starts_with("complex<"); }
};

// None for a type that is not a tensor of static shape, or has an encoding.
std::optional<TensorText> read_tensor(std::string_view type) {
  constexpr std::string_view kBegin = "tensor<";
  if (!type.starts_with(kBegin) || !type.ends_with('>') || type.find(',') != std::string_view::npos)
    return std::nullopt;
  std::string_view rest = type.substr(kBegin.size(), type.size() - kBegin.size() - 1);
  TensorText read;
  while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
    std::size_t x = rest.find('x');
    if (x == std::string_view::npos) return std::nullopt;
    read.sizes.emplace_back(rest.substr(0, x));
    rest.remove_prefix(x + 1);
  }
  if (rest.empty() || rest[0] == '?' || rest[0] == '*') return std::nullopt;
  read.element = rest;
  return read;
}

// The number in `num_batch_dims = "1"`; none if the call has no such attribute.
std::optional<std::size_t> batch_dimensions(const Module& module, const ModuleOp& op) {
  if (op.mnemonic != "stablehlo.custom_call" || op.symbol.empty()) return std::nullopt;
  std::string_view attributes =
      module.resolve(find_attribute(op.attributes, "mhlo.frontend_attributes"));
  constexpr std::string_view kName = "num_batch_dims = \"";
  std::size_t at = attributes.find(kName), count = 0;
  if (at == std::string_view::npos) return std::nullopt;
  const char* begin = attributes.data() + at + kName.size();
  const char* end = attributes.data() + attributes.size();
  if (std::from_chars(begin, end, count).ec != std::errc()) return std::nullopt;
  return count;
}

std::string numbers(std::size_t from, std::size_t to) {
  std::vector<std::string> all;
  for (std::size_t i = from; i < to; ++i) all.push_back(cat(i));
  return join(all, ", ");
}

// Writes the body of a substitute. Its values are %v0, %v1, ...
class Substitute {
 public:
  Substitute(std::size_t batch, std::string mesh) : batch_(batch), mesh_(std::move(mesh)) {}

  std::string function(std::string_view name, const std::vector<TensorText>& operands,
                       const std::vector<TensorText>& results) {
    std::vector<std::string> parameters, made, types, parts;
    for (std::size_t i = 0; i < operands.size(); ++i)
      parameters.push_back(cat("%a", i, ": ", operands[i].to_string()));
    for (std::size_t i = 0; i < operands.size(); ++i)
      parts.push_back(sum(constrained(cat("%a", i), operands[i]), operands[i]));
    const TensorText sums = operands[0].leading(batch_).with("f32");
    std::string total = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i)
      total = value(cat("stablehlo.add ", total, ", ", parts[i], " : ", sums.to_string()));
    for (const TensorText& result : results) {
      made.push_back(constrained(spread(total, sums, result), result));
      types.push_back(result.to_string());
    }
    return cat("\nfunc.func private @\"", name, "\"(", join(parameters, ", "), ") -> (",
               join(types, ", "), ") { ", body_, "return ", join(made, ", "), " : ",
               join(types, ", "), " } ");
  }

 private:
  std::string value(std::string_view op) {
    std::string name = cat("%v", count_++);
    append(body_, cat(name, " = ", op, "\n"));
    return name;
  }

  std::string convert(const std::string& from, const TensorText& type, std::string_view element) {
    if (type.element == element) return from;
    return value(cat("stablehlo.convert ", from, " : (", type.to_string(), ") -> ",
                     type.with(std::string(element)).to_string()));
  }

  // The value, split by its first dimensions at most.
  std::string constrained(const std::string& from, const TensorText& type) {
    if (mesh_.empty() || type.sizes.empty()) return from;
    std::vector<std::string> dimensions;
    for (std::size_t d = 0; d < type.sizes.size(); ++d)
      dimensions.emplace_back(d < batch_ ? "{?}" : "{}");
    return value(cat("sdy.sharding_constraint ", from, " <@", mesh_, ", [", join(dimensions, ", "),
                     "]> : ", type.to_string()));
  }

  std::string sum(std::string from, TensorText type) {
    if (type.is_complex()) {
      TensorText real = type.with(type.element == "complex<f64>" ? "f64" : "f32");
      from =
          value(cat("stablehlo.real ", from, " : (", type.to_string(), ") -> ", real.to_string()));
      type = std::move(real);
    }
    from = convert(from, type, "f32");
    type.element = "f32";
    if (type.sizes.size() == batch_) return from;
    std::string zero = value("stablehlo.constant dense<0.0> : tensor<f32>");
    return value(cat("stablehlo.reduce(", from, " init: ", zero,
                     ") applies stablehlo.add across dimensions = [",
                     numbers(batch_, type.sizes.size()), "] : (", type.to_string(),
                     ", tensor<f32>) -> ", type.leading(batch_).to_string()));
  }

  std::string spread(const std::string& from, const TensorText& sums, const TensorText& to) {
    TensorText real = to;
    if (to.is_complex()) real.element = to.element == "complex<f64>" ? "f64" : "f32";
    std::string made =
        value(cat("stablehlo.broadcast_in_dim ", from, ", dims = [", numbers(0, batch_), "] : (",
                  sums.to_string(), ") -> ", to.with("f32").to_string()));
    made = convert(made, to.with("f32"), real.element);
    if (!to.is_complex()) return made;
    return value(cat("stablehlo.complex ", made, ", ", made, " : (", real.to_string(), ", ",
                     real.to_string(), ") -> ", to.to_string()));
  }

  std::size_t batch_;
  std::string mesh_, body_;
  std::size_t count_ = 0;
};

class BatchedCallReplacer {
 public:
  explicit BatchedCallReplacer(const Module& module) : module_(module) {}

  BatchedCalls run() {
    for_each_op(module_.ops(), [&](const ModuleOp& op) {
      if (op.mnemonic == "sdy.mesh" && mesh_.empty() &&
          op.text.find("<[]") == std::string_view::npos)
        mesh_ = op.symbol;
    });
    TextEdits edits(module_.text());
    BatchedCalls made;
    std::size_t end = 0;  // of the functions: new ones are behind them, in the module
    for_each_op(module_.ops(), [&](const ModuleOp& op) {
      std::optional<std::size_t> batch = batch_dimensions(module_, op);
      if (!batch) return;
      std::optional<std::string> call = call_of(op, *batch);
      if (!call) return;
      edits.replace(module_.range(op.text), *std::move(call));
      end = std::max(end, module_.range(op.text).end);
      made.targets.push_back(op.symbol);
    });
    if (made.targets.empty()) return {std::string(module_.text())};
    for (const ModuleFunction& function : module_.functions())
      if (function.op) end = std::max(end, module_.range(function.op->text).end);
    edits.replace({end, end}, functions_ + "\n");
    made.text = edits.apply();
    return made;
  }

 private:
  // The call of a new function for a custom call; none for types that no substitute has.
  std::optional<std::string> call_of(const ModuleOp& op, std::size_t batch) {
    std::vector<TensorText> operands, results;
    std::vector<std::string> names, types, result_types;
    auto read = [&](int number, std::vector<TensorText>& to, std::vector<std::string>& texts) {
      if (number < 0) return false;
      std::optional<TensorText> type = read_tensor(module_.variable(number).type);
      if (!type || type->sizes.size() < batch) return false;
      texts.push_back(type->to_string());
      to.push_back(*std::move(type));
      return true;
    };
    for (int operand : op.operands)
      if (!read(operand, operands, types)) return std::nullopt;
    for (int result : op.results)
      if (!read(result, results, result_types)) return std::nullopt;
    if (operands.empty() || results.empty()) return std::nullopt;
    std::string_view text = op.text;
    std::size_t open = text.find('(', text.find('@')), close = text.find(')', open);
    if (close == std::string_view::npos) return std::nullopt;
    std::string name = cat("meshard.", op.symbol, ".", count_++);
    append(functions_, Substitute(batch, mesh_).function(name, operands, results));
    std::string call(text.substr(0, text.find('=') + 1));
    append(call, cat(" func.call @\"", name, "\"", text.substr(open, close + 1 - open), " : (",
                     join(types, ", "), ") -> (", join(result_types, ", "), ") ", op.location));
    auto lines = std::count(text.begin(), text.end(), '\n');
    auto kept = std::count(call.begin(), call.end(), '\n');
    return cat(
        call,
        std::string(static_cast<std::size_t>(std::max<std::ptrdiff_t>(lines - kept, 0)), '\n'));
  }

  const Module& module_;
  std::string mesh_, functions_;
  std::size_t count_ = 0;
};

constexpr std::string_view kNewerCall = "custom_call_v2";
constexpr std::size_t kOlderProperties = 8;

// Whether the properties of a newer call are those of an older one, and an empty array, which in
// vhlo has the code 1 and no elements. They are stored in order of name; the new one is the last.
bool is_older_call(const Bytecode& bytecode, const BytecodeOp& op) {
  ByteCursor properties(op.properties);
  for (std::size_t i = 0; i < kOlderProperties; ++i) properties.number();
  const BytecodeEntry& added = bytecode.attribute(properties.number());
  ByteCursor cursor(added.bytes);
  return properties.at_end() && !added.is_text && added.dialect == "vhlo" && cursor.number() == 1 &&
         cursor.number() == 0;
}

constexpr const char* kTyped = "4 : i32";

// Replaces what a call says of its interface.
void make_typed(const Module& module, const ModuleOp& call, TextEdits& edits) {
  bool has_version = false;
  for (const ModuleAttribute& attribute : call.attributes) {
    if (attribute.name == "api_version") {
      has_version = true;
      edits.replace(module.range(attribute.value), kTyped);
    } else if (attribute.name == "backend_config") {
      edits.replace(module.range(attribute.value), "{}");
    }
  }
  if (!has_version) {
    // The attributes come after the operands.
    std::size_t begin = module.range(call.text).begin;
    std::size_t after = call.text.find(')', call.text.find('('));
    if (after == std::string_view::npos) return;
    std::size_t open = call.text.find_first_not_of(" <", after + 1);
    bool has_attributes = open != std::string_view::npos && call.text[open] == '{';
    std::size_t at = begin + (has_attributes ? open + 1 : after + 1);
    bool first = call.attributes.empty();
    edits.replace({at, at}, has_attributes ? cat("api_version = ", kTyped, first ? "" : ", ")
                                           : cat(" {api_version = ", kTyped, "}"));
  }
}

}  // namespace

Result<BatchedCalls> replace_batched_calls(std::string_view text) {
  if (text.find("num_batch_dims") == std::string_view::npos) return BatchedCalls{std::string(text)};
  MESHARD_ASSIGN_OR_RETURN(Module module, Module::parse(std::string(text)));
  return BatchedCallReplacer(module).run();
}

Result<std::string> with_older_calls(std::string bytecode) {
  if (!Bytecode::is_bytecode(bytecode) || bytecode.find(kNewerCall) == std::string::npos)
    return bytecode;
  return caught([&] {
    Bytecode read(bytecode);
    bool all_older = true;
    for_each_op(read, [&](const BytecodeOp& op) {
      if (op.name == cat("vhlo.", kNewerCall)) all_older = all_older && is_older_call(read, op);
    });
    if (!all_older) return bytecode;
    // The name is one string of the bytes. Who reads an older call ignores what follows its
    // properties.
    for (std::uint64_t i = 0; i < read.num_strings(); ++i)
      if (std::string_view name = read.string(i); name == kNewerCall)
        bytecode[static_cast<std::size_t>(name.data() - bytecode.data()) + name.size() - 1] = '1';
    return bytecode;
  });
}

Result<std::string> with_typed_calls(std::string_view text, std::string_view target) {
  MESHARD_ASSIGN_OR_RETURN(Module module, Module::parse(std::string(text)));
  TextEdits edits(text);
  for_each_op(module.ops(), [&](const ModuleOp& op) {
    if (op.mnemonic != "stablehlo.custom_call") return;
    std::string called = op.symbol.empty()
                             ? plain_text(find_attribute(op.attributes, "call_target_name"))
                             : op.symbol;
    if (called == target) make_typed(module, op, edits);
  });
  return edits.apply();
}

}  // namespace meshard::stablehlo
