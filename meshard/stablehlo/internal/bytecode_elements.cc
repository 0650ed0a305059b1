// Tested in meshard/stablehlo/module_as_text_test.cc.
#include "meshard/stablehlo/internal/bytecode_elements.h"

#include <cstring>

#include "meshard/array/host_array.h"
#include "meshard/base/cat.h"
#include "meshard/stablehlo/constants.h"
#include "meshard/stablehlo/internal/bytecode.h"
#include "meshard/stablehlo/types.h"

namespace meshard::stablehlo {
namespace {

// Integers are written in digits if there are at most so many, as in MLIR.
constexpr std::int64_t kMostDigits = 100;

// i1 is packed into bits, or the one byte 0xff of a splat; earlier versions had bytes.
std::string unpacked(std::string_view blob, std::size_t count) {
  if (blob.size() == 1 && blob[0] == '\xff') return std::string(1, '\1');
  if (blob.size() == (count + 7) / 8 && blob.size() != count) {
    std::string out(count, '\0');
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<char>((static_cast<unsigned char>(blob[i / 8]) >> (i % 8)) & 1);
    return out;
  }
  std::string out(blob);
  for (char& each : out) each = each != 0;
  return out;
}

// Appends `[[0, 1], [2, 3]]`.
void append_nested(std::string& out, const Elements& elements, std::size_t dimension,
                   std::size_t& next) {
  const Shape& shape = elements.type.shape;
  if (dimension == static_cast<std::size_t>(shape.rank())) {
    std::int64_t value = integer_at(elements, next++);
    if (elements.type.dtype == DType::bool_)
      out += value ? "true" : "false";
    else if (elements.type.dtype == DType::u64)
      append(out, static_cast<std::uint64_t>(value));
    else
      append(out, value);
    return;
  }
  out += '[';
  for (std::int64_t i = 0; i < shape.sizes()[dimension]; ++i) {
    if (i > 0) out += ", ";
    append_nested(out, elements, dimension + 1, next);
  }
  out += ']';
}

std::string bytes_as_hex(std::string_view bytes) {
  std::string out = "0x";
  out.reserve(2 + 2 * bytes.size());
  for (char byte : bytes) {
    out += kHexDigits[static_cast<unsigned char>(byte) >> 4];
    out += kHexDigits[static_cast<unsigned char>(byte) & 15];
  }
  return out;
}

}  // namespace

std::optional<Elements> elements_of(std::string_view type, std::string_view blob) {
  Elements elements;
  std::string text(type);  // an index has 64 bits
  if (std::size_t at = text.find("index>"); at != std::string::npos) text.replace(at, 5, "i64");
  std::optional<TensorType> parsed = parse_type(text);
  if (!parsed) return std::nullopt;
  elements.type = *parsed;
  auto count = static_cast<std::size_t>(parsed->size());
  const bool is_bool = parsed->dtype == DType::bool_;
  if (is_bool && count > blob.size() * 8 && blob.size() != 1)
    fail_bytecode(cat("a constant of type ", type, " has ", blob.size(), " bytes"));
  elements.bytes = is_bool ? unpacked(blob, count) : std::string(blob);
  const std::size_t width = size_in_bytes(parsed->dtype);
  elements.is_splat = count > 1 && elements.bytes.size() == width;
  if (!elements.is_splat && elements.bytes.size() != count * width)
    fail_bytecode(cat("a constant of type ", type, " has ", blob.size(), " bytes"));
  return elements;
}

std::int64_t integer_at(const Elements& elements, std::size_t i) {
  return visit_dtype(elements.type.dtype, [&]<class T>() -> std::int64_t {
    if constexpr (std::is_integral_v<T>) {
      T value{};
      std::memcpy(&value, elements.bytes.data() + (elements.is_splat ? 0 : i * sizeof(T)),
                  sizeof(T));
      return static_cast<std::int64_t>(value);
    } else {
      fail_bytecode("an attribute with integers has other elements");
    }
  });
}

std::string dense_elements(std::string_view type, std::string_view blob) {
  std::optional<Elements> elements = elements_of(type, blob);
  if (!elements) return cat("dense<\"", bytes_as_hex(blob), "\"> : ", type);
  const TensorType& tensor = elements->type;
  const bool is_bool = tensor.dtype == DType::bool_;
  if (tensor.size() == 0) return cat("dense<> : ", type);
  // Versions of MLIR differ in the hexadecimal form of bools.
  if (!elements->is_splat &&
      (is_bool || (is_integer(tensor.dtype) && tensor.size() <= kMostDigits))) {
    std::string out = "dense<";
    std::size_t next = 0;
    append_nested(out, *elements, 0, next);
    return cat(out, "> : ", type);
  }
  const TensorType held = elements->is_splat ? TensorType{tensor.dtype, Shape()} : tensor;
  std::string out = dense_text(HostArray::copy_of(held, elements->bytes.data()));
  return cat(out.substr(0, out.rfind("> : ")), "> : ", type);
}

}  // namespace meshard::stablehlo
