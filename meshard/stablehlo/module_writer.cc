#include "meshard/stablehlo/module_writer.h"

#include "meshard/base/error.h"
#include "meshard/stablehlo/constants.h"

namespace meshard::stablehlo {
namespace {

/// Writes the attributes of an argument or result incrementally: `{a, b}`.
class AttributeList {
 public:
  explicit AttributeList(std::string& out) : out_(out) {}
  std::string& next() {
    out_.append(any_ ? ", " : " {");
    any_ = true;
    return out_;
  }
  void sharding(std::string_view text) {
    if (!text.empty()) next().append("sdy.sharding = #sdy.sharding").append(text);
  }
  void more(std::string_view text) {
    if (!text.empty()) next().append(text);
  }
  void end() {
    if (any_) out_.push_back('}');
  }

 private:
  std::string& out_;
  bool any_ = false;
};

void append_location_to(std::string& out, std::string_view location) {
  if (location.empty()) return;
  append_quoted(out.append(" loc("), location);
  out.push_back(')');
}

void append_argument(std::string& out, std::size_t position, const ArgumentText& argument) {
  append_value(out, Value::argument(static_cast<std::int32_t>(position)));
  out.append(": ");
  append_type(out, *argument.type);
  AttributeList attributes(out);
  attributes.sharding(argument.sharding);
  if (argument.aliases_output >= 0) {
    append_number(attributes.next().append("tf.aliasing_output = "), argument.aliases_output);
    out.append(" : i32");
  }
  if (argument.donated) attributes.next().append("jax.buffer_donor = true");
  attributes.more(argument.attributes);
  attributes.end();
  append_location_to(out, argument.name);
}

// Appends a symbol, `@step`; in quotes unless it is a bare identifier of MLIR: `@"stage 0"`.
void append_symbol(std::string& out, std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  bool is_bare = !name.empty() && is_letter(name[0]);
  for (char c : name)
    is_bare = is_bare && (is_letter(c) || (c >= '0' && c <= '9') || c == '$' || c == '.');
  out.push_back('@');
  if (is_bare)
    out.append(name);
  else
    append_quoted(out, name);
}

}  // namespace

ModuleWriter::ModuleWriter(std::string_view name, std::int64_t num_partitions,
                           std::int64_t num_replicas, std::string_view attributes) {
  text_.append("module ");
  append_symbol(text_, name);
  append_number(text_.append(" attributes {mhlo.num_partitions = "), num_partitions);
  append_number(text_.append(" : i32, mhlo.num_replicas = "), num_replicas);
  text_.append(" : i32");
  if (!attributes.empty()) text_.append(", ").append(attributes);
  text_.append("} {\n");
}

void ModuleWriter::mesh(std::string_view name, std::string_view text) {
  indent();
  text_.append("sdy.mesh @").append(name).append(" = ").append(text).append("\n");
}

void ModuleWriter::begin_function(std::string_view name, ListOf<ArgumentText> arguments,
                                  ListOf<ResultText> results, bool is_public) {
  indent();
  text_.append(is_public ? "func.func public @" : "func.func private @").append(name).append("(");
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i != 0) text_.append(", ");
    append_argument(text_, i, arguments[i]);
  }
  text_.append(") -> (");
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i != 0) text_.append(", ");
    append_type(text_, *results[i].type);
    AttributeList attributes(text_);
    attributes.sharding(results[i].sharding);
    attributes.more(results[i].attributes);
    attributes.end();
  }
  text_.append(") {\n");
  ++depth_;
}

void ModuleWriter::end_function(ListOf<Typed> results) {
  terminate(results, "return");
  --depth_;
  indent();
  text_.append("}\n");
}

std::string ModuleWriter::finish() && {
  internal_check(depth_ == 1 && pending_.empty(),
                 "a module is finished with an op or function open");
  text_.append("}\n");
  return std::move(text_);
}

void ModuleWriter::begin_op(ListOf<Typed> results) {
  indent();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i != 0) text_.append(", ");
    append_value(text_, results[i].value);
  }
  if (results.size() != 0) text_.append(" = ");
}

void ModuleWriter::append_location(std::string_view location) {
  append_location_to(text_, location);
  text_.push_back('\n');
}

void ModuleWriter::append_operands(ListOf<Typed> operands) {
  text_.push_back('(');
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i != 0) text_.append(", ");
    append_value(text_, operands[i].value);
  }
  text_.push_back(')');
}

void ModuleWriter::append_types(std::string& out, ListOf<Typed> values,
                                bool always_in_parentheses) {
  bool parentheses = always_in_parentheses || values.size() != 1;
  if (parentheses) out.push_back('(');
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out.append(", ");
    append_type(out, *values[i].type);
  }
  if (parentheses) out.push_back(')');
}

void ModuleWriter::elementwise(std::string_view mnemonic, Value result, ListOf<Value> operands,
                               const TensorType& type, std::string_view location) {
  indent();
  append_value(text_, result);
  text_.append(" = ").append(mnemonic).append(" ");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i != 0) text_.append(", ");
    append_value(text_, operands[i]);
  }
  text_.append(" : ");
  append_type(text_, type);
  append_location(location);
}

OpWriter ModuleWriter::op(std::string_view mnemonic, ListOf<Typed> results, ListOf<Typed> operands,
                          std::string_view location) {
  begin_op(results);
  text_.append("\"").append(mnemonic).append("\"");
  append_operands(operands);
  std::size_t signature = pending_.size();
  append_types(pending_.append(" : "), operands, true);
  append_types(pending_.append(" -> "), results, false);
  append_location_to(pending_, location);
  return OpWriter(*this, signature);
}

void ModuleWriter::constant(Value result, const HostArray& array, std::string_view location) {
  indent();
  append_value(text_, result);
  append_dense(text_.append(" = stablehlo.constant "), array);
  append_location(location);
}

void ModuleWriter::splat(Value result, const TensorType& type, double value,
                         std::string_view location) {
  indent();
  append_value(text_, result);
  text_.append(" = stablehlo.constant ").append(splat_text(type, value));
  append_location(location);
}

Value ModuleWriter::scalar(DType dtype, double value) {
  Value result = temporary();
  splat(result, {dtype, {}}, value);
  return result;
}

void ModuleWriter::sharding_constraint(Value result, Value operand, const TensorType& type,
                                       std::string_view sharding, std::string_view location) {
  indent();
  append_value(text_, result);
  append_value(text_.append(" = sdy.sharding_constraint "), operand);
  append_type(text_.append(" ").append(sharding).append(" : "), type);
  append_location(location);
}

void ModuleWriter::call(std::string_view function, ListOf<Typed> results, ListOf<Typed> operands,
                        std::string_view location) {
  begin_op(results);
  text_.append("func.call @").append(function);
  append_operands(operands);
  append_types(text_.append(" : "), operands, true);
  append_types(text_.append(" -> "), results, false);
  append_location(location);
}

OpWriter ModuleWriter::custom_call(std::string_view target, ListOf<Typed> results,
                                   ListOf<Typed> operands, std::string_view location) {
  OpWriter writer = op("stablehlo.custom_call", results, operands, location);
  writer.string("call_target_name", target);
  return writer;
}

void ModuleWriter::terminate(ListOf<Typed> values, std::string_view mnemonic) {
  indent();
  text_.append(mnemonic);
  for (std::size_t i = 0; i < values.size(); ++i) {
    text_.append(i == 0 ? " " : ", ");
    append_value(text_, values[i].value);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    text_.append(i == 0 ? " : " : ", ");
    append_type(text_, *values[i].type);
  }
  text_.push_back('\n');
}

}  // namespace meshard::stablehlo
