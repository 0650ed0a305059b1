// Tested in meshard/stablehlo/module_writer_test.cc.
// OpWriter: writes the parts of one op in generic form.
#include <bit>

#include "meshard/base/error.h"
#include "meshard/stablehlo/constants.h"
#include "meshard/stablehlo/module_writer.h"

namespace meshard::stablehlo {
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
