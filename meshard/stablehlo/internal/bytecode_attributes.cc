// Tested in meshard/stablehlo/module_as_text_test.cc.
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/bytecode_elements.h"
#include "meshard/stablehlo/internal/bytecode_values.h"
#include "meshard/stablehlo/types.h"

namespace meshard::stablehlo {
namespace {

// The text of attributes, by the numbers of BuiltinDialectBytecode.td, VhloBytecode.cpp,
// StablehloBytecode.cpp and bytecode.td of Shardy.

constexpr int kDeepestAttribute = 50;

std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string symbol(std::string_view name) {
  std::string out;
  append_symbol(out, name);
  return out;
}

// An enumeration, with the text around its names.
struct EnumText {
  std::string_view head, tail;
  std::array<std::string_view, 6> names;
};
constexpr EnumText kDirection = {
    "#stablehlo<comparison_direction ", ">", {"EQ", "NE", "GE", "GT", "LE", "LT"}};
constexpr EnumText kComparison = {
    "#stablehlo<comparison_type ", ">", {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}};
constexpr EnumText kApiVersion = {"", " : i32", {"0", "1", "2", "3", "4"}};
constexpr EnumText kFft = {"#stablehlo<fft_type ", ">", {"FFT", "IFFT", "RFFT", "IRFFT"}};
constexpr EnumText kPrecision = {"#stablehlo<precision ", ">", {"DEFAULT", "HIGH", "HIGHEST"}};
constexpr EnumText kAlgorithm = {
    "#stablehlo<rng_algorithm ", ">", {"DEFAULT", "THREE_FRY", "PHILOX"}};
constexpr EnumText kDistribution = {"#stablehlo<rng_distribution ", ">", {"", "UNIFORM", "NORMAL"}};
constexpr EnumText kTranspose = {
    "#stablehlo<transpose ", ">", {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}};
constexpr EnumText kAccuracy = {
    "#stablehlo.result_accuracy_mode<", ">", {"DEFAULT", "HIGHEST", "TOLERANCE"}};

std::string enum_text(const EnumText& kind, ByteCursor& cursor) {
  std::uint64_t value = cursor.number();
  std::string_view name = value < kind.names.size() ? kind.names[value] : std::string_view();
  if (name.empty()) fail_bytecode(cat("`", kind.head, "` has no value ", value));
  return cat(kind.head, name, kind.tail);
}

std::vector<std::int64_t> signed_numbers(ByteCursor& cursor) {
  std::vector<std::int64_t> numbers(cursor.count());
  for (std::int64_t& number : numbers) number = cursor.signed_number();
  return numbers;
}

std::string numbers_text(const std::vector<std::int64_t>& numbers) {
  std::string out = "[";
  for (std::int64_t number : numbers) append(out, cat(out.size() > 1 ? ", " : "", number));
  return out + "]";
}

// `name = [0, 1], other = 2` from lists of numbers and numbers, in this order.
std::string struct_text(std::string_view head, ByteCursor& cursor,
                        std::initializer_list<std::pair<std::string_view, bool>> fields) {
  std::string out(head);
  bool first = true;
  for (const auto& [name, is_list] : fields) {
    std::string value =
        is_list ? numbers_text(signed_numbers(cursor)) : cat(cursor.signed_number());
    if (value == "[]") continue;
    append(out, cat(first ? "" : ", ", name, " = ", value));
    first = false;
  }
  return out + ">";
}

// The bits of a floating-point number, with so many hexadecimal digits.
std::string hex_text(std::uint64_t bits, int digits) {
  std::string out = "0x";
  for (int i = digits - 1; i >= 0; --i) out += kHexDigits[(bits >> (4 * i)) & 15];
  return out;
}

std::string double_text(std::uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  if (!std::isfinite(value)) return hex_text(bits, 16);
  char buffer[40];
  char* end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string text(buffer, end);
  if (text.find('.') == std::string::npos) text.insert(text.find('e'), ".0");
  return text;
}

// Bits of a number of a type with at most 64: one byte, or a number with its sign last.
std::uint64_t read_bits(ByteCursor& cursor, int width) {
  if (width <= 8) return cursor.byte();
  return static_cast<std::uint64_t>(cursor.signed_number());
}

// The number of bits in the name of a scalar type: `ui8`, `bf16`, `f8E4M3FN`.
int bits_of(std::string_view type) {
  std::size_t digit = type.find_first_of("0123456789");
  int bits = 0;
  if (digit != std::string_view::npos)
    std::from_chars(type.data() + digit, type.data() + type.size(), bits);
  return bits;
}

// `3 : i64`; empty for integers of more than 64 bits.
std::string integer_attribute(std::string_view type, ByteCursor& cursor) {
  if (type == "index") return cat(cursor.signed_number(), " : index");
  const int width = bits_of(type);
  if (width == 1) return cursor.byte() ? "true" : "false";
  const bool is_unsigned = type.starts_with("ui");
  if (width > 64) return "";
  std::int64_t value = width > 8     ? cursor.signed_number()
                       : is_unsigned ? std::int64_t{cursor.byte()}
                                     : std::int64_t{static_cast<std::int8_t>(cursor.byte())};
  return is_unsigned ? cat(static_cast<std::uint64_t>(value), " : ", type)
                     : cat(value, " : ", type);
}

// `array<i64: 1, 2>`; empty if the elements are neither integers nor bools.
std::string array_attribute(std::string_view type, ByteCursor& cursor) {
  const std::uint64_t count = cursor.number();
  std::string_view blob = cursor.take(static_cast<std::size_t>(cursor.number()));
  if (count > blob.size()) fail_bytecode("an array has more elements than bytes");
  // Here, bools are bytes.
  std::optional<Elements> elements =
      elements_of(cat("tensor<", count, "x", type == "i1" ? "i8" : type, ">"), blob);
  if (!elements || !is_integer(elements->type.dtype)) return "";
  std::string out = cat("array<", type);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t value = integer_at(*elements, i);
    out += i == 0 ? ": " : ", ";
    append(out, type != "i1" ? cat(value) : value != 0 ? "true" : "false");
  }
  return out + ">";
}

// The enumerations and structs of StableHLO by their numbers; empty for other numbers.
std::string plain_attribute(std::uint64_t code, ByteCursor& cursor) {
  switch (code) {
    case 1:
      return struct_text("#stablehlo.channel_handle<", cursor,
                         {{"handle", false}, {"type", false}});
    case 2: return enum_text(kDirection, cursor);
    case 3: return enum_text(kComparison, cursor);
    case 4:
      return struct_text("#stablehlo.conv<raw ", cursor,
                         {{"input_batch_dimension", false},
                          {"input_feature_dimension", false},
                          {"input_spatial_dimensions", true},
                          {"kernel_input_feature_dimension", false},
                          {"kernel_output_feature_dimension", false},
                          {"kernel_spatial_dimensions", true},
                          {"output_batch_dimension", false},
                          {"output_feature_dimension", false},
                          {"output_spatial_dimensions", true}});
    case 5:
      return struct_text("#stablehlo.dot<", cursor,
                         {{"lhs_batching_dimensions", true},
                          {"rhs_batching_dimensions", true},
                          {"lhs_contracting_dimensions", true},
                          {"rhs_contracting_dimensions", true}});
    case 6: return enum_text(kFft, cursor);
    case 7:
      return struct_text("#stablehlo.gather<", cursor,
                         {{"offset_dims", true},
                          {"collapsed_slice_dims", true},
                          {"operand_batching_dims", true},
                          {"start_indices_batching_dims", true},
                          {"start_index_map", true},
                          {"index_vector_dim", false}});
    case 8: return enum_text(kPrecision, cursor);
    case 9: return enum_text(kAlgorithm, cursor);
    case 10: return enum_text(kDistribution, cursor);
    case 11:
      return struct_text("#stablehlo.scatter<", cursor,
                         {{"update_window_dims", true},
                          {"inserted_window_dims", true},
                          {"input_batching_dims", true},
                          {"scatter_indices_batching_dims", true},
                          {"scatter_dims_to_operand_dims", true},
                          {"index_vector_dim", false}});
    case 12: return enum_text(kTranspose, cursor);
    case 16: return enum_text(kAccuracy, cursor);
    default: return "";
  }
}

}  // namespace

std::string BytecodeValues::list_text(ByteCursor& cursor, int depth) {
  std::string out = "[";
  for (std::uint64_t element : list(cursor))
    append(out, cat(out.size() > 1 ? ", " : "", attribute_text(element, depth + 1)));
  return out + "]";
}

std::string BytecodeValues::dictionary_text(std::uint64_t attribute, int depth) {
  return dictionary_text(dictionary(attribute), depth);
}

std::string BytecodeValues::dictionary_text(const Dictionary& entries, int depth) {
  std::string out;
  for (const auto& [name, value] : entries) {
    append(out, cat(out.empty() ? "{" : ", ", std::string_view(symbol(name)).substr(1)));
    std::string text = attribute_text(value, depth + 1);
    if (text != "unit") append(out, cat(" = ", text));
  }
  return out.empty() ? out : out + "}";
}

std::string BytecodeValues::builtin_attribute(std::uint64_t code, ByteCursor& cursor, int depth) {
  switch (code) {
    case 0: return list_text(cursor, depth);
    case 2: return quoted(bytecode_.string(cursor.number()));
    case 3: {
      std::string_view string = bytecode_.string(cursor.number());
      return cat(quoted(string), " : ", known_type_text(cursor.number()));
    }
    case 4: return symbol(text(cursor.number()));
    case 5: {
      std::string out = symbol(text(cursor.number()));
      for (std::uint64_t nested : list(cursor))
        append(out, cat("::", attribute_text(nested, depth + 1)));
      return out;
    }
    case 6: return known_type_text(cursor.number());
    case 7: return "unit";
    case 8: return integer_attribute(known_type_text(cursor.number()), cursor);
    case 9: {
      std::string type = known_type_text(cursor.number());
      const int width = bits_of(type);
      std::uint64_t bits = read_bits(cursor, width);
      return cat(hex_text(bits, (width + 3) / 4), " : ", type);
    }
    case 17: return array_attribute(known_type_text(cursor.number()), cursor);
    case 18: {
      std::string type = known_type_text(cursor.number());
      std::string_view blob = cursor.take(static_cast<std::size_t>(cursor.number()));
      work(2 * blob.size());
      return dense_elements(type, blob);
    }
    default: return "";
  }
}

std::string BytecodeValues::vhlo_attribute(std::uint64_t code, ByteCursor& cursor, int depth) {
  switch (code) {
    case 1: return list_text(cursor, depth);
    case 2: return cursor.number() ? "true" : "false";
    case 3: return enum_text(kDirection, cursor);
    case 4: return enum_text(kComparison, cursor);
    case 5: return enum_text(kApiVersion, cursor);
    case 7: return enum_text(kFft, cursor);
    case 8: return builtin_attribute(9, cursor, depth);
    case 9: return builtin_attribute(8, cursor, depth);
    case 10: return stablehlo_attribute(14, cursor, depth);
    case 11: return enum_text(kPrecision, cursor);
    case 12: return enum_text(kAlgorithm, cursor);
    case 13: return enum_text(kDistribution, cursor);
    case 14: return quoted(bytecode_.string(cursor.number()));
    case 15: return builtin_attribute(18, cursor, depth);
    case 16: return enum_text(kTranspose, cursor);
    case 17: return known_type_text(cursor.number());
    case 18: return stablehlo_attribute(13, cursor, depth);
    case 19: return enum_text(kAccuracy, cursor);
    case 20: return stablehlo_attribute(17, cursor, depth);
    case 21: return stablehlo_attribute(19, cursor, depth);
    case 22: {
      std::string name = text(cursor.number());
      std::string part = cursor.number()
                             ? cat(", sub_axis_info = ", attribute_text(cursor.number(), depth + 1))
                             : std::string();
      return cat("#stablehlo.axis_ref<name = ", quoted(name), part, ">");
    }
    case 23: {
      std::uint64_t mesh = cursor.number();
      std::string name = text(mesh);
      std::string mesh_text = name.empty() ? attribute_text(mesh, depth + 1) : symbol(name);
      return cat("#stablehlo.replica_group_mesh_axes<mesh = ", mesh_text,
                 ", axes = ", attribute_text(cursor.number(), depth + 1), ">");
    }
    case 24: {
      std::string name = text(cursor.number());
      return cat("#stablehlo.mesh_axis<name = ", quoted(name), ", size = ", cursor.signed_number(),
                 ">");
    }
    default: return "";
  }
}

std::string BytecodeValues::stablehlo_attribute(std::uint64_t code, ByteCursor& cursor, int depth) {
  switch (code) {
    case 13: {
      std::string out = "#stablehlo.bounds<";
      std::vector<std::int64_t> bounds = signed_numbers(cursor);
      for (std::size_t i = 0; i < bounds.size(); ++i)
        append(out, cat(i > 0 ? ", " : "", bounds[i] < 0 ? std::string("?") : cat(bounds[i])));
      return out + ">";
    }
    case 14: {
      std::string results = numbers_text(signed_numbers(cursor));
      std::int64_t operand = cursor.signed_number();
      return cat("#stablehlo.output_operand_alias<output_tuple_indices = ", results,
                 ", operand_index = ", operand,
                 ", operand_tuple_indices = ", numbers_text(signed_numbers(cursor)), ">");
    }
    case 15: {
      std::string out = "#stablehlo.dot_algorithm<";
      for (std::string_view name :
           {"lhs_precision_type", "rhs_precision_type", "accumulation_type"})
        append(out, cat(name, " = ", known_type_text(cursor.number()), ", "));
      for (std::string_view name :
           {"lhs_component_count", "rhs_component_count", "num_primitive_operations"})
        append(out, cat(name, " = ", cursor.signed_number(), ", "));
      return cat(out, "allow_imprecise_accumulation = ", cursor.byte() ? "true" : "false", ">");
    }
    case 17: {
      std::uint64_t absolute = read_bits(cursor, 64), relative = read_bits(cursor, 64);
      std::int64_t ulps = cursor.signed_number();
      std::string out = "#stablehlo.result_accuracy<";
      if (absolute != 0) append(out, cat("atol = ", double_text(absolute), ", "));
      if (relative != 0) append(out, cat("rtol = ", double_text(relative), ", "));
      if (ulps != 0) append(out, cat("ulps = ", ulps, ", "));
      return cat(out, "mode = ", attribute_text(cursor.number(), depth + 1), ">");
    }
    case 19: {
      std::int64_t before = cursor.signed_number();
      return cat("(", before, ")", cursor.signed_number());
    }
    default: return plain_attribute(code, cursor);
  }
}

// The letter of a factor of a sharding rule: i, j, ..., z, z_1, ...
static std::string factor_name(std::int64_t factor) {
  constexpr std::int64_t kLast = 'z' - 'i';
  return factor <= kLast ? std::string(1, static_cast<char>('i' + factor))
                         : cat("z_", factor - kLast);
}

// `[i, jk], [*]`: the factors of each dimension of some tensors.
std::string BytecodeValues::mappings_text(ByteCursor& cursor) {
  std::string out;
  for (std::uint64_t tensor : list(cursor)) {
    ByteCursor dimensions = open_sdy(tensor, 9);
    std::string inside;
    for (std::uint64_t dimension : list(dimensions)) {
      ByteCursor factors = open_sdy(dimension, 8);
      if (!inside.empty()) inside += ", ";
      std::vector<std::int64_t> numbers = signed_numbers(factors);
      if (numbers.empty()) inside += '*';
      for (std::int64_t factor : numbers) inside += factor_name(factor);
    }
    append(out, cat(out.empty() ? "" : ", ", "[", inside, "]"));
  }
  return out;
}

std::string BytecodeValues::sharding_rule_text(ByteCursor& cursor) {
  std::vector<std::int64_t> sizes = signed_numbers(cursor);
  std::string operands = mappings_text(cursor), results = mappings_text(cursor), out;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    append(out,
           cat(i == 0 ? " {" : ", ", factor_name(static_cast<std::int64_t>(i)), "=", sizes[i]));
  if (!sizes.empty()) out += '}';
  for (std::string_view kind :
       {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
    std::string factors;
    for (std::int64_t factor : signed_numbers(cursor))
      append(factors, cat(factors.empty() ? "" : ", ", factor_name(factor)));
    if (!factors.empty()) append(out, cat(" ", kind, "={", factors, "}"));
  }
  return cat("#sdy.op_sharding_rule<(", operands, ")->(", results, ")", out,
             cursor.byte() ? ", custom" : "", ">");
}

std::string BytecodeValues::sdy_attribute(std::uint64_t attribute, std::uint64_t code,
                                          ByteCursor& cursor) {
  switch (code) {
    case 0: {
      std::string axes;
      for (std::uint64_t axis : list(cursor))
        append(axes, cat(axes.empty() ? "" : ", ", quoted(text(axis))));
      return cat("#sdy<manual_axes{", axes, "}>");
    }
    case 2: return cat("#sdy.mesh", mesh("", attribute).text);
    case 10: return sharding_rule_text(cursor);
    case 6:
    case 15:
    case 17: return sharding_text(attribute);
    case 7:
    case 16: {
      constexpr std::string_view kHead = "#sdy.sharding";
      std::string out = "#sdy.sharding_per_value<[";
      bool first = true;
      for (std::uint64_t sharding : list(cursor)) {
        std::string text = sharding_text(sharding);
        if (!text.starts_with(kHead)) fail_bytecode("a part of a sharding has an unexpected kind");
        append(out, cat(first ? "" : ", ", std::string_view(text).substr(kHead.size())));
        first = false;
      }
      return out + "]>";
    }
    default: return "";
  }
}

std::string BytecodeValues::attribute_text(std::uint64_t attribute, int depth) {
  if (depth > kDeepestAttribute) fail_bytecode("attributes are nested too deeply");
  const BytecodeEntry& entry = bytecode_.attribute(attribute);
  work(1 + entry.bytes.size());
  if (entry.is_text) return std::string(entry.bytes.substr(0, entry.bytes.find('\0')));
  std::uint64_t code = 0;
  std::string out;
  if (auto builtin = open(entry, "builtin", code)) {
    out = code == 1 ? dictionary_text(attribute, depth) : builtin_attribute(code, *builtin, depth);
    if (code == 1 && out.empty()) out = "{}";
  } else if (auto vhlo = open(entry, "vhlo", code)) {
    out = code == 6 ? dictionary_text(attribute, depth) : vhlo_attribute(code, *vhlo, depth);
    if (code == 6 && out.empty()) out = "{}";
  } else if (auto stablehlo = open(entry, "stablehlo", code)) {
    out = stablehlo_attribute(code, *stablehlo, depth);
  } else if (auto sdy = open(entry, "sdy", code)) {
    out = sdy_attribute(attribute, code, *sdy);
  }
  if (out.empty())
    fail_bytecode(cat("the attribute with the number ", code, " of the dialect `", entry.dialect,
                      "` is not known"));
  return out;
}

std::vector<std::int64_t> BytecodeValues::integers(std::uint64_t attribute) {
  std::uint64_t code = 0;
  const BytecodeEntry& entry = bytecode_.attribute(attribute);
  std::optional<ByteCursor> cursor = open(entry, "vhlo", code);
  if (!cursor || code != 15) fail_bytecode("a list of integers has an unexpected kind");
  std::string type = known_type_text(cursor->number());
  std::string_view blob = cursor->take(static_cast<std::size_t>(cursor->number()));
  std::optional<Elements> elements = elements_of(type, blob);
  if (!elements) fail_bytecode(cat("a list of integers has the type ", type));
  work(static_cast<std::uint64_t>(elements->type.size()));
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < static_cast<std::size_t>(elements->type.size()); ++i)
    numbers.push_back(integer_at(*elements, i));
  return numbers;
}

std::string BytecodeValues::location_text(std::uint64_t attribute,
                                          FunctionRef<std::string(std::uint64_t)> nested) {
  std::uint64_t code = 0;
  auto cursor = open(bytecode_.attribute(attribute), "builtin", code);
  if (!cursor) return "loc(unknown)";
  switch (code) {
    case 10: {
      std::string callee = nested(cursor->number());
      return cat("loc(callsite(", callee, " at ", nested(cursor->number()), "))");
    }
    case 11:
    case 22: {
      std::string file = quoted(text(cursor->number()));
      const std::uint64_t numbers = code == 11 ? 2 : cursor->number();
      std::uint64_t line = numbers > 0 ? cursor->number() : 0;
      return cat("loc(", file, ":", line, ":", numbers > 1 ? cursor->number() : 0, ")");
    }
    case 12:
    case 13: {
      std::string parts;
      for (std::uint64_t part : list(*cursor))
        append(parts, cat(parts.empty() ? "" : ", ", nested(part)));
      return parts.empty() ? "loc(unknown)" : cat("loc(fused[", parts, "])");
    }
    case 14: {
      std::string name = quoted(text(cursor->number()));
      return cat("loc(", name, "(", nested(cursor->number()), "))");
    }
    default: return "loc(unknown)";
  }
}

}  // namespace meshard::stablehlo
