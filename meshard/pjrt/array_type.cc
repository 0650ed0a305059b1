#include "meshard/pjrt/array_type.h"

#include <charconv>
#include <limits>

namespace meshard::pjrt {

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
