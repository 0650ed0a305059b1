#include "meshard/stablehlo/constants.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>

#include "meshard/stablehlo/types.h"

namespace meshard::stablehlo {
namespace {

void append_byte(std::string& out, unsigned byte) {
  out.push_back(kHexDigits[byte >> 4]);
  out.push_back(kHexDigits[byte & 15]);
}

bool all_equal(const std::byte* data, std::size_t bytes, std::size_t width) {
  return std::memcmp(data, data + width, bytes - width) == 0;
}

/// Appends one element's bits in hexadecimal, most significant first: valid for any float type.
void append_hex_literal(std::string& out, const std::byte* element, std::size_t width) {
  out.append("0x");
  for (std::size_t i = width; i-- > 0;) append_byte(out, static_cast<unsigned>(element[i]));
}

/// Appends decimal digits if they are short and round-trip exactly. The parser reads them as a
/// double, so they must round-trip as a double.
bool append_decimal(std::string& out, double value) {
  constexpr std::ptrdiff_t kShort = 10;
  if (!std::isfinite(value) || (value == 0 && std::signbit(value))) return false;
  char buffer[40];
  char* end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  if (end - buffer > kShort) return false;
  std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  if (text.find('.') != std::string_view::npos) {
    out.append(text);
  } else {  // MLIR requires a decimal point, before any exponent
    std::size_t exponent = std::min(text.find('e'), text.size());
    out.append(text.substr(0, exponent));
    out.append(".0");
    out.append(text.substr(exponent));
  }
  return true;
}

void append_literal(std::string& out, DType dtype, const std::byte* element) {
  if (is_complex(dtype)) {  // (1.0, 2.5)
    DType part = real_dtype(dtype);
    out.push_back('(');
    append_literal(out, part, element);
    out.append(", ");
    append_literal(out, part, element + size_in_bytes(part));
    out.push_back(')');
    return;
  }
  visit_dtype(dtype, [&]<class T>() {
    T value;
    std::memcpy(&value, element, sizeof(T));
    if constexpr (std::is_same_v<T, bool>) {
      out.append(value ? "true" : "false");
    } else if constexpr (std::is_integral_v<T>) {
      append(out, value);
    } else if constexpr (requires { value.imag; }) {
      return;  // complex numbers are handled above
    } else if (!append_decimal(out, static_cast<double>(value))) {
      append_hex_literal(out, element, sizeof(T));
    }
  });
}

void append_bytes(std::string& out, const std::byte* data, std::size_t bytes) {
  std::size_t start = out.size();
  out.resize(start + 2 * bytes);
  char* text = out.data() + start;
  for (std::size_t i = 0; i < bytes; ++i) {
    auto byte = static_cast<unsigned>(data[i]);
    *text++ = kHexDigits[byte >> 4];
    *text++ = kHexDigits[byte & 15];
  }
}

// `[[true, false], [false, true]]`: versions of MLIR differ in the hexadecimal form of bools.
void append_bools(std::string& out, std::span<const std::int64_t> sizes, const std::byte*& next) {
  if (sizes.empty()) {
    out.append(*next++ != std::byte{0} ? "true" : "false");
    return;
  }
  out.push_back('[');
  for (std::int64_t i = 0; i < sizes[0]; ++i) {
    if (i != 0) out.append(", ");
    append_bools(out, sizes.subspan(1), next);
  }
  out.push_back(']');
}

}  // namespace

void append_dense(std::string& out, const HostArray& array) {
  const std::byte* data = array.bytes();
  auto bytes = static_cast<std::size_t>(array.size_in_bytes());
  std::size_t width = size_in_bytes(array.dtype());
  out.append("dense<");
  if (bytes != 0 && all_equal(data, bytes, width)) {
    append_literal(out, array.dtype(), data);
  } else if (bytes != 0 && array.dtype() == DType::bool_) {
    const Dimensions& sizes = array.shape().sizes();
    append_bools(out, std::span<const std::int64_t>(sizes.begin(), sizes.end()), data);
  } else if (bytes != 0) {
    out.append("\"0x");
    append_bytes(out, data, bytes);
    out.push_back('"');
  }
  out.append("> : ");
  append_type(out, array.type());
}

std::string dense_text(const HostArray& array) {
  std::string out;
  append_dense(out, array);
  return out;
}

std::string splat_text(const TensorType& type, double value) {
  std::string out = "dense<";
  if (type.size() != 0) {
    HostArray one = HostArray::scalar(value).astype(type.dtype);
    append_literal(out, type.dtype, one.bytes());
  }
  out.append("> : ");
  append_type(out, type);
  return out;
}

}  // namespace meshard::stablehlo
