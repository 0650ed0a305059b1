#include "meshard/stablehlo/module_writer.h"

#include <bit>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/stablehlo/constants.h"

namespace meshard::stablehlo {
namespace {

/// Appends the lists that are not empty as `name = [0, 1]`; returns whether there were any.
bool append_lists(std::string& out,
                  std::initializer_list<std::pair<std::string_view, const Dimensions*>> lists) {
  bool any = false;
  for (const auto& [name, list] : lists) {
    if (list->empty()) continue;
    if (any) out.append(", ");
    any = true;
    out.append(name).append(" = [");
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i != 0) out.append(", ");
      append_number(out, (*list)[i]);
    }
    out.push_back(']');
  }
  return any;
}

void append_last(std::string& out, bool any, std::string_view name, std::int64_t number) {
  if (any) out.append(", ");
  append_number(out.append(name).append(" = "), number);
  out.push_back('>');
}

/// Appends `[b, f, 0, 1]`: for each dimension its letter, or its number among the spatial
/// dimensions.
void append_layout(std::string& out, char first_letter, std::int64_t first, char second_letter,
                   std::int64_t second, const Dimensions& spatial) {
  auto rank = static_cast<std::int64_t>(spatial.size()) + 2;
  out.push_back('[');
  for (std::int64_t d = 0; d < rank; ++d) {
    if (d != 0) out.append(", ");
    if (d == first) out.push_back(first_letter);
    if (d == second) out.push_back(second_letter);
    for (std::size_t i = 0; i < spatial.size(); ++i)
      if (spatial[i] == d) append_number(out, static_cast<std::int64_t>(i));
  }
  out.push_back(']');
}

}  // namespace

void append_attribute(std::string& out, const DotDimensions& numbers) {
  out.append("#stablehlo.dot<");
  append_lists(out, {{"lhs_batching_dimensions", &numbers.lhs_batch},
                     {"rhs_batching_dimensions", &numbers.rhs_batch},
                     {"lhs_contracting_dimensions", &numbers.lhs_contracting},
                     {"rhs_contracting_dimensions", &numbers.rhs_contracting}});
  out.push_back('>');
}

void append_attribute(std::string& out, const GatherDimensions& numbers) {
  out.append("#stablehlo.gather<");
  bool any =
      append_lists(out, {{"offset_dims", &numbers.offset_dims},
                         {"collapsed_slice_dims", &numbers.collapsed_slice_dims},
                         {"operand_batching_dims", &numbers.operand_batching_dims},
                         {"start_indices_batching_dims", &numbers.start_indices_batching_dims},
                         {"start_index_map", &numbers.start_index_map}});
  append_last(out, any, "index_vector_dim", numbers.index_vector_dim);
}

void append_attribute(std::string& out, const ScatterDimensions& numbers) {
  out.append("#stablehlo.scatter<");
  bool any =
      append_lists(out, {{"update_window_dims", &numbers.update_window_dims},
                         {"inserted_window_dims", &numbers.inserted_window_dims},
                         {"input_batching_dims", &numbers.input_batching_dims},
                         {"scatter_indices_batching_dims", &numbers.scatter_indices_batching_dims},
                         {"scatter_dims_to_operand_dims", &numbers.scatter_dims_to_operand_dims}});
  append_last(out, any, "index_vector_dim", numbers.index_vector_dim);
}

void append_attribute(std::string& out, const ConvolutionDimensionNumbers& numbers) {
  out.append("#stablehlo.conv<");
  append_layout(out, 'b', numbers.input_batch, 'f', numbers.input_feature, numbers.input_spatial);
  out.push_back('x');
  append_layout(out, 'o', numbers.kernel_output_feature, 'i', numbers.kernel_input_feature,
                numbers.kernel_spatial);
  out.append("->");
  append_layout(out, 'b', numbers.output_batch, 'f', numbers.output_feature,
                numbers.output_spatial);
  out.push_back('>');
}

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
  text_.append(merged_functions_).append("}\n");
  return merged_aliases_.empty() ? std::move(text_) : merged_aliases_ + text_;
}

void ModuleWriter::merge(const MergedModule& module) {
  merged_functions_.append(module.functions);
  merged_aliases_.append(module.aliases);
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

namespace {

void append_enumeration(std::string& out, std::string_view kind, std::string_view value) {
  out.append("#stablehlo<").append(kind).append(1, ' ').append(value).append(1, '>');
}

// Appends `first A, B last`.
template <class T, class AppendOne>
void append_list(std::string& out, std::string_view first, const ListOf<T>& values,
                 std::string_view last, AppendOne append_one) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.append(i == 0 ? first : ", ");
    append_one(values[i]);
  }
  out.append(last);
}

}  // namespace

std::string& OpWriter::begin_attribute(std::string_view name) {
  internal_check(state_ <= State::kAttributes, "an attribute after a region");
  std::string& out = writer_.text_;
  out.append(state_ == State::kNames ? " <{" : ", ");
  state_ = State::kAttributes;
  return out.append(name);
}

OpWriter& OpWriter::i64(std::string_view name, std::int64_t value) {
  append_number(begin_attribute(name).append(" = "), value);
  writer_.text_.append(" : i64");
  return *this;
}

OpWriter& OpWriter::i32(std::string_view name, std::int32_t value) {
  append_number(begin_attribute(name).append(" = "), value);
  writer_.text_.append(" : i32");
  return *this;
}

OpWriter& OpWriter::f32(std::string_view name, float value) {
  std::string& out = begin_attribute(name).append(" = 0x");
  auto bits = std::bit_cast<std::uint32_t>(value);
  for (int shift = 28; shift >= 0; shift -= 4) out.push_back(kHexDigits[bits >> shift & 15]);
  out.append(" : f32");
  return *this;
}

OpWriter& OpWriter::boolean(std::string_view name, bool value) {
  return raw(name, value ? "true" : "false");
}

OpWriter& OpWriter::i64_array(std::string_view name, ListOf<std::int64_t> values) {
  std::string& out = begin_attribute(name).append(" = array<i64");
  append_list(out, ": ", values, ">", [&](std::int64_t value) { append_number(out, value); });
  return *this;
}

OpWriter& OpWriter::bool_array(std::string_view name, ListOf<std::int64_t> values) {
  std::string& out = begin_attribute(name).append(" = array<i1");
  append_list(out, ": ", values, ">",
              [&](std::int64_t value) { out.append(value != 0 ? "true" : "false"); });
  return *this;
}

OpWriter& OpWriter::dense(std::string_view name, const HostArray& array) {
  append_dense(begin_attribute(name).append(" = "), array);
  return *this;
}

OpWriter& OpWriter::enumeration(std::string_view name, std::string_view kind,
                                std::string_view value) {
  append_enumeration(begin_attribute(name).append(" = "), kind, value);
  return *this;
}

OpWriter& OpWriter::enumerations(std::string_view name, std::string_view kind,
                                 ListOf<std::string_view> values) {
  std::string& out = begin_attribute(name).append(" = [");
  append_list(out, "", values, "]",
              [&](std::string_view value) { append_enumeration(out, kind, value); });
  return *this;
}

OpWriter& OpWriter::dimension_numbers(std::string_view name, const DotDimensions& numbers) {
  append_attribute(begin_attribute(name).append(" = "), numbers);
  return *this;
}

OpWriter& OpWriter::dimension_numbers(std::string_view name, const GatherDimensions& numbers) {
  append_attribute(begin_attribute(name).append(" = "), numbers);
  return *this;
}

OpWriter& OpWriter::dimension_numbers(std::string_view name, const ScatterDimensions& numbers) {
  append_attribute(begin_attribute(name).append(" = "), numbers);
  return *this;
}

OpWriter& OpWriter::dimension_numbers(std::string_view name,
                                      const ConvolutionDimensionNumbers& numbers) {
  append_attribute(begin_attribute(name).append(" = "), numbers);
  return *this;
}

OpWriter& OpWriter::string(std::string_view name, std::string_view text) {
  append_quoted(begin_attribute(name).append(" = "), text);
  return *this;
}

OpWriter& OpWriter::type(std::string_view name, const TensorType& type) {
  append_type(begin_attribute(name).append(" = "), type);
  return *this;
}

OpWriter& OpWriter::symbol(std::string_view name, std::string_view function) {
  begin_attribute(name).append(" = @").append(function);
  return *this;
}

OpWriter& OpWriter::unit(std::string_view name) {
  begin_attribute(name);
  return *this;
}

OpWriter& OpWriter::raw(std::string_view name, std::string_view text) {
  begin_attribute(name).append(" = ").append(text);
  return *this;
}

OpWriter& OpWriter::begin_region(ListOf<Typed> arguments) {
  internal_check(state_ <= State::kRegions, "a region after discardable attributes");
  if (state_ == State::kAttributes) writer_.text_.append("}>");
  std::string& out = writer_.text_;
  out.append(state_ == State::kRegions ? ", {\n" : " ({\n");
  state_ = State::kRegions;
  if (arguments.size() != 0) {
    writer_.indent();
    append_list(out, "^bb0(", arguments, "):\n", [&](const Typed& argument) {
      append_value(out, argument.value);
      append_type(out.append(": "), *argument.type);
    });
  }
  ++writer_.depth_;
  return *this;
}

OpWriter& OpWriter::end_region() {
  --writer_.depth_;
  writer_.indent();
  writer_.text_.push_back('}');
  return *this;
}

OpWriter& OpWriter::discardable(std::string_view name, std::string_view text) {
  std::string& out = writer_.text_;
  if (state_ == State::kAttributes) out.append("}>");
  if (state_ == State::kRegions) out.push_back(')');
  out.append(state_ == State::kDiscardable ? ", " : " {");
  state_ = State::kDiscardable;
  out.append(name).append(" = ").append(text);
  return *this;
}

void OpWriter::done() {
  std::string& out = writer_.text_;
  if (state_ == State::kAttributes) out.append("}>");
  if (state_ == State::kRegions) out.push_back(')');
  if (state_ == State::kDiscardable) out.push_back('}');
  std::string_view pending = writer_.pending_;
  out.append(pending.substr(signature_));
  out.push_back('\n');
  writer_.pending_.resize(signature_);
}

}  // namespace meshard::stablehlo
