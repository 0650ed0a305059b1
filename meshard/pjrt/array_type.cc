#include "meshard/pjrt/array_type.h"

#include <array>
#include <cctype>
#include <charconv>

#include "meshard/base/fingerprint.h"

namespace meshard::pjrt {
namespace {

struct Row {
  std::string_view name;
  std::string_view mlir;  // lower case
  int bits;
};

// In the order of PJRT_Buffer_Type.
constexpr std::array kRows = {
    Row{"invalid", "", 0},
    Row{"pred", "i1", 8},
    Row{"s8", "i8", 8},
    Row{"s16", "i16", 16},
    Row{"s32", "i32", 32},
    Row{"s64", "i64", 64},
    Row{"u8", "ui8", 8},
    Row{"u16", "ui16", 16},
    Row{"u32", "ui32", 32},
    Row{"u64", "ui64", 64},
    Row{"f16", "f16", 16},
    Row{"f32", "f32", 32},
    Row{"f64", "f64", 64},
    Row{"bf16", "bf16", 16},
    Row{"c64", "complex<f32>", 64},
    Row{"c128", "complex<f64>", 128},
    Row{"f8e5m2", "f8e5m2", 8},
    Row{"f8e4m3fn", "f8e4m3fn", 8},
    Row{"f8e4m3b11fnuz", "f8e4m3b11fnuz", 8},
    Row{"f8e5m2fnuz", "f8e5m2fnuz", 8},
    Row{"f8e4m3fnuz", "f8e4m3fnuz", 8},
    Row{"s4", "i4", 4},
    Row{"u4", "ui4", 4},
    Row{"token", "", 0},
    Row{"s2", "i2", 2},
    Row{"u2", "ui2", 2},
    Row{"f8e4m3", "f8e4m3", 8},
    Row{"f8e3m4", "f8e3m4", 8},
    Row{"f8e8m0fnu", "f8e8m0fnu", 8},
    Row{"f4e2m1fn", "f4e2m1fn", 4},
};

const Row& row(ElementType type) {
  auto index = static_cast<std::size_t>(type);
  return kRows[index < kRows.size() ? index : 0];
}

}  // namespace

bool is_array_type(ElementType type) { return row(type).bits != 0; }

int bit_width(ElementType type) { return row(type).bits; }

std::size_t host_bytes(ElementType type) {
  return static_cast<std::size_t>((row(type).bits + 7) / 8);
}

std::string_view to_string(ElementType type) { return row(type).name; }

Result<ElementType> parse_element_type(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].bits != 0 && (lower == kRows[i].name || lower == kRows[i].mlir))
      return static_cast<ElementType>(i);
  return Error(ErrorCode::kInvalidArgument, cat("[pjrt] no element type is called \"", text, "\""));
}

Result<ArrayType> ArrayType::make(ElementType element, std::span<const std::int64_t> dimensions) {
  ArrayType type{element, Dimensions(dimensions)};
  if (!is_array_type(element))
    return Error(ErrorCode::kInvalidArgument,
                 cat("[pjrt] element type number ", static_cast<int>(element),
                     " is not valid for a buffer"));
  // Dimensions of size 0 count as 1 here, because the plugin also multiplies the other dimensions.
  std::int64_t bytes = bit_width(element) > 64 ? 16 : 8;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] < 0)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[pjrt] dimension ", i, " of ", type.to_string(), " is negative"));
    if (dimensions[i] != 0 && __builtin_mul_overflow(bytes, dimensions[i], &bytes))
      return Error(
          ErrorCode::kInvalidArgument,
          cat("[pjrt] ", type.to_string(), " must have fewer than 2^60 elements (2^59 for c128)"));
  }
  return type;
}

std::int64_t ArrayType::element_count() const {
  std::int64_t count = 1;
  for (std::int64_t extent : dimensions) count *= extent;
  return count;
}

std::size_t ArrayType::host_size() const {
  return static_cast<std::size_t>(element_count()) * host_bytes(element);
}

std::string ArrayType::to_string() const {
  return cat(pjrt::to_string(element), "[", join(dimensions, ","), "]");
}

Result<ArrayType> ArrayType::parse(std::string_view text) {
  auto open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']')
    return Error(ErrorCode::kInvalidArgument,
                 cat("[pjrt] expected a type such as f32[2,3], got \"", text, "\""));
  MESHARD_ASSIGN_OR_RETURN(ElementType element, parse_element_type(text.substr(0, open)));
  Dimensions dimensions;
  const char* at = text.data() + open + 1;
  const char* end = text.data() + text.size() - 1;
  while (at != end) {
    std::int64_t extent = 0;
    auto [next, error] = std::from_chars(at, end, extent);
    bool more = next != end && *next == ',' && next + 1 != end;
    if (error != std::errc() || (next != end && !more))
      return Error(ErrorCode::kInvalidArgument,
                   cat("[pjrt] the dimensions in \"", text, "\" are not numbers"));
    dimensions.push_back(extent);
    at = more ? next + 1 : next;
  }
  return make(element, {dimensions.data(), dimensions.size()});
}

std::size_t ArrayType::hash() const {
  std::size_t seed = static_cast<std::size_t>(element);
  for (std::int64_t extent : dimensions)
    seed = hash_combine(seed, static_cast<std::size_t>(extent));
  return hash_combine(seed, dimensions.size());
}

}  // namespace meshard::pjrt
