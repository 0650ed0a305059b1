// Tested in meshard/stablehlo/module_writer_test.cc.
// OpWriter: writes the parts of one op in generic form.
#include <bit>

#include "meshard/base/error.h"
#include "meshard/stablehlo/constants.h"
#include "meshard/stablehlo/module_writer.h"

namespace meshard::stablehlo {
namespace {

void append_enumeration(std::string& out, std::string_view kind, std::string_view value) {
  out.append("#stablehlo<");
  out.append(kind);
  out.push_back(' ');
  out.append(value);
  out.push_back('>');
}

}  // namespace

std::string& OpWriter::begin_attribute(std::string_view name) {
  internal_check(state_ <= State::kAttributes, "an attribute after a region");
  std::string& out = writer_.text_;
  out.append(state_ == State::kNames ? " <{" : ", ");
  state_ = State::kAttributes;
  out.append(name);
  return out;
}

OpWriter& OpWriter::i64(std::string_view name, std::int64_t value) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  append_number(out, value);
  out.append(" : i64");
  return *this;
}

OpWriter& OpWriter::i32(std::string_view name, std::int32_t value) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  append_number(out, value);
  out.append(" : i32");
  return *this;
}

OpWriter& OpWriter::f32(std::string_view name, float value) {
  std::string& out = begin_attribute(name);
  out.append(" = 0x");
  auto bits = std::bit_cast<std::uint32_t>(value);
  for (int shift = 28; shift >= 0; shift -= 4)
    out.push_back("0123456789ABCDEF"[bits >> shift & 15]);
  out.append(" : f32");
  return *this;
}

OpWriter& OpWriter::boolean(std::string_view name, bool value) {
  return raw(name, value ? "true" : "false");
}

OpWriter& OpWriter::i64_array(std::string_view name, ListOf<std::int64_t> values) {
  std::string& out = begin_attribute(name);
  out.append(" = array<i64");
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.append(i == 0 ? ": " : ", ");
    append_number(out, values[i]);
  }
  out.push_back('>');
  return *this;
}

OpWriter& OpWriter::bool_array(std::string_view name, ListOf<std::int64_t> values) {
  std::string& out = begin_attribute(name);
  out.append(" = array<i1");
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.append(i == 0 ? ": " : ", ");
    out.append(values[i] != 0 ? "true" : "false");
  }
  out.push_back('>');
  return *this;
}

OpWriter& OpWriter::dense(std::string_view name, const HostArray& array) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  append_dense(out, array);
  return *this;
}

OpWriter& OpWriter::enumeration(std::string_view name, std::string_view kind,
                                std::string_view value) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  append_enumeration(out, kind, value);
  return *this;
}

OpWriter& OpWriter::enumerations(std::string_view name, std::string_view kind,
                                 ListOf<std::string_view> values) {
  std::string& out = begin_attribute(name);
  out.append(" = [");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out.append(", ");
    append_enumeration(out, kind, values[i]);
  }
  out.push_back(']');
  return *this;
}

OpWriter& OpWriter::dimension_numbers(std::string_view name, const DotDimensions& numbers) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  append_attribute(out, numbers);
  return *this;
}

OpWriter& OpWriter::dimension_numbers(std::string_view name, const GatherDimensions& numbers) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  append_attribute(out, numbers);
  return *this;
}

OpWriter& OpWriter::dimension_numbers(std::string_view name, const ScatterDimensions& numbers) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  append_attribute(out, numbers);
  return *this;
}

OpWriter& OpWriter::dimension_numbers(std::string_view name,
                                      const ConvolutionDimensionNumbers& numbers) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  append_attribute(out, numbers);
  return *this;
}

OpWriter& OpWriter::string(std::string_view name, std::string_view text) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  append_quoted(out, text);
  return *this;
}

OpWriter& OpWriter::type(std::string_view name, const TensorType& type) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  append_type(out, type);
  return *this;
}

OpWriter& OpWriter::symbol(std::string_view name, std::string_view function) {
  std::string& out = begin_attribute(name);
  out.append(" = @");
  out.append(function);
  return *this;
}

OpWriter& OpWriter::unit(std::string_view name) {
  begin_attribute(name);
  return *this;
}

OpWriter& OpWriter::raw(std::string_view name, std::string_view text) {
  std::string& out = begin_attribute(name);
  out.append(" = ");
  out.append(text);
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
    out.append("^bb0(");
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (i != 0) out.append(", ");
      append_value(out, arguments[i].value);
      out.append(": ");
      append_type(out, *arguments[i].type);
    }
    out.append("):\n");
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
  out.append(name);
  out.append(" = ");
  out.append(text);
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
