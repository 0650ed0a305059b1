#include "meshard/stablehlo/types.h"

#include <charconv>

namespace meshard::stablehlo {

void append_number(std::string& out, std::int64_t number) {
  if (number >= 0 && number < 10) return out.push_back(static_cast<char>('0' + number));
  char buffer[24];
  char* end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  out.append(buffer, end);
}

void append_type(std::string& out, const TensorType& type) {
  out.append("tensor<");
  for (std::int64_t size : type.shape) {
    append_number(out, size);
    out.push_back('x');
  }
  out.append(stablehlo_name(type.dtype));
  out.push_back('>');
}

std::string type_text(const TensorType& type) {
  std::string out;
  append_type(out, type);
  return out;
}

std::optional<TensorType> parse_type(std::string_view text) {
  if (!text.starts_with("tensor<") || !text.ends_with(">")) return std::nullopt;
  text = text.substr(7, text.size() - 8);
  Dimensions sizes;
  double product = 1;
  while (true) {
    std::int64_t size = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end == text.data() + text.size() || *end != 'x' || size < 0) break;
    sizes.push_back(size);
    product *= static_cast<double>(size);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  Result<DType> dtype = parse_stablehlo_dtype(text);
  if (!dtype.ok() || product > 1e17) return std::nullopt;
  return TensorType{*dtype, Shape(std::move(sizes))};
}

void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte >= 0x7F) {
      out.push_back('\\');
      out.push_back(kHexDigits[byte >> 4]);
      out.push_back(kHexDigits[byte & 15]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

void append_symbol(std::string& out, std::string_view name) {
  const auto is_letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  bool is_bare = !name.empty() && is_letter(name[0]);
  for (char c : name) is_bare &= is_letter(c) || c == '$' || c == '.' || (c >= '0' && c <= '9');
  out.push_back('@');
  if (is_bare)
    out.append(name);
  else
    append_quoted(out, name);
}

void append_value(std::string& out, Value value) {
  constexpr std::string_view kPrefixes[] = {"%", "%arg", "%t", "%b"};
  out.append(kPrefixes[static_cast<int>(value.kind)]);
  append_number(out, value.number);
}

std::string Value::to_string() const {
  std::string out;
  append_value(out, *this);
  return out;
}

}  // namespace meshard::stablehlo
