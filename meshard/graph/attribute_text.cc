#include "meshard/graph/attribute_text.h"

#include <charconv>
#include <cstring>

namespace meshard::attribute_text {
namespace {

Error malformed(std::string_view kind, std::string_view text) {
  return Error(ErrorCode::kInvalidArgument, cat("[graph] '", text, "' is not ", kind));
}

template <class Number>
Result<void> parse_number(std::string_view text, Number& value, std::string_view kind) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return malformed(kind, text);
  return {};
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

constexpr char kDigits[] = "0123456789abcdef";

}  // namespace

void print(std::string& out, bool value) { append(out, value); }
void print(std::string& out, std::int64_t value) { append(out, value); }
void print(std::string& out, double value) { append(out, value); }
void print(std::string& out, const std::string& value) {
  out.push_back('"');
  for (char c : value) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
}
void print(std::string& out, DType value) { append(out, value); }
void print(std::string& out, const Shape& value) { append(out, value); }
void print(std::string& out, const Sharding& value) { append(out, value); }
void print(std::string& out, const AxisList& value) { append(out, meshard::to_string(value)); }

// The type, then the bytes in hexadecimal: exact for every dtype, including NaN payloads.
void print(std::string& out, const HostArray& value) {
  append(out, value.type());
  out.push_back(':');
  const auto* bytes = reinterpret_cast<const unsigned char*>(value.bytes());
  for (std::int64_t i = 0; i < value.type().bytes(); ++i) {
    out.push_back(kDigits[bytes[i] >> 4]);
    out.push_back(kDigits[bytes[i] & 15]);
  }
}

void print_list(std::string& out, const std::int64_t* values, std::size_t count) {
  out.push_back('[');
  for (std::size_t i = 0; i < count; ++i) {
    if (i) out.append(", ");
    append(out, values[i]);
  }
  out.push_back(']');
}

void append_key_bytes(std::string& out, const void* bytes, std::size_t count) {
  std::uint64_t length = count;
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  if (count) out.append(static_cast<const char*>(bytes), count);
}
void append_key(std::string& out, const std::string& value) {
  append_key_bytes(out, value.data(), value.size());
}
void append_key(std::string& out, const Shape& value) {
  append_key_bytes(out, value.begin(),
                   static_cast<std::size_t>(value.rank()) * sizeof(std::int64_t));
}
void append_key(std::string& out, const TensorType& value) {
  append_key(out, value.dtype);
  append_key(out, value.shape);
}
void append_key(std::string& out, const HostArray& value) {
  append_key(out, value.type());
  append_key_bytes(out, value.bytes(), static_cast<std::size_t>(value.type().bytes()));
}
void append_key(std::string& out, const Sharding& value) { append_key(out, value.to_string()); }
void append_key(std::string& out, const AxisList& value) {
  append_key(out, meshard::to_string(value));
}

Result<void> parse(std::string_view text, bool& value) {
  if (text != "true" && text != "false") return malformed("true or false", text);
  value = text == "true";
  return {};
}
Result<void> parse(std::string_view text, std::int64_t& value) {
  return parse_number(text, value, "a whole number");
}
Result<void> parse(std::string_view text, double& value) {
  return parse_number(text, value, "a number");
}
Result<void> parse(std::string_view text, std::string& value) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"')
    return malformed("a quoted string", text);
  value.clear();
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\') ++i;
    value.push_back(text[i]);
  }
  return {};
}
Result<void> parse(std::string_view text, DType& value) {
  MESHARD_ASSIGN_OR_RETURN(value, parse_dtype(text));
  return {};
}
Result<void> parse(std::string_view text, Shape& value) {
  MESHARD_ASSIGN_OR_RETURN(value, Shape::parse(text));
  return {};
}
Result<void> parse(std::string_view text, std::optional<Sharding>& value) {
  if (text == "none") {
    value.reset();
    return {};
  }
  MESHARD_ASSIGN_OR_RETURN(value, Sharding::parse(text));
  return {};
}

Result<void> parse(std::string_view text, AxisList& value) {
  if (text.size() < 2 || text.front() != '{' || text.back() != '}')
    return malformed("a list of axes", text);
  value.clear();
  for (std::string_view piece : split_outside_brackets(text.substr(1, text.size() - 2), ',')) {
    MESHARD_ASSIGN_OR_RETURN(AxisRef axis, AxisRef::parse(piece));
    value.push_back(std::move(axis));
  }
  return {};
}

Result<void> parse(std::string_view text, HostArray& value) {
  std::size_t colon = text.rfind(':');
  if (colon == text.npos) return malformed("an array (type:bytes)", text);
  MESHARD_ASSIGN_OR_RETURN(TensorType type, TensorType::parse(text.substr(0, colon)));
  std::string_view digits = text.substr(colon + 1);
  std::size_t count = static_cast<std::size_t>(type.bytes());
  if (digits.size() != 2 * count) return malformed("an array with all its bytes", text);
  value = HostArray::uninitialized(type);
  auto* bytes = reinterpret_cast<unsigned char*>(value.mutable_bytes());
  for (std::size_t i = 0; i < count; ++i) {
    const char* pair = digits.data() + 2 * i;
    auto [end, error] = std::from_chars(pair, pair + 2, bytes[i], 16);
    if (error != std::errc() || end != pair + 2) return malformed("hexadecimal", digits);
  }
  return {};
}

Result<std::vector<std::int64_t>> parse_list(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    return malformed("a list", text);
  std::vector<std::int64_t> numbers;
  for (std::string_view piece : split_outside_brackets(text.substr(1, text.size() - 2), ',')) {
    std::int64_t number = 0;
    MESHARD_RETURN_IF_ERROR(parse(piece, number));
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::string_view> split_outside_brackets(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  if (trim(text).empty()) return pieces;
  std::size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (std::strchr("([{<", c)) {
      ++depth;
    } else if (std::strchr(")]}>", c)) {
      --depth;
    } else if (c == separator && depth == 0) {
      pieces.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  pieces.push_back(trim(text.substr(begin)));
  return pieces;
}

Reader::Reader(std::string_view text) {
  for (std::string_view piece : split_outside_brackets(text, ',')) {
    std::size_t equals = piece.find('=');
    if (equals == piece.npos) {
      error_ = malformed("name=value", piece);
      return;
    }
    fields_.emplace_back(trim(piece.substr(0, equals)), trim(piece.substr(equals + 1)));
  }
}

std::optional<std::string_view> Reader::take(std::string_view name) {
  for (auto field = fields_.begin(); field != fields_.end(); ++field)
    if (field->first == name) {
      std::string_view text = field->second;
      fields_.erase(field);
      return text;
    }
  error_ = Error(ErrorCode::kInvalidArgument, cat("[graph] attribute ", name, " is missing"));
  return std::nullopt;
}

Result<void> Reader::finish() {
  if (error_) return *error_;
  if (!fields_.empty())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[graph] unknown attribute ", fields_.front().first));
  return {};
}

}  // namespace meshard::attribute_text
