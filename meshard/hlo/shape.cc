#include "meshard/hlo/shape.h"

#include <algorithm>
#include <array>

#include "meshard/base/cat.h"
#include "meshard/base/saturating.h"
#include "meshard/hlo/internal/reader.h"
#include "meshard/pjrt/executable.h"

// Field numbers are those of ShapeProto, LayoutProto and TileProto of xla/xla_data.proto.

namespace meshard {
namespace {

using pjrt::field;
using pjrt::on_field;
using pjrt::read_message;
using pjrt::WireField;

constexpr int kMostNesting = 64;  // of tuples; damaged bytes could nest without limit
std::int64_t bytes_of(std::int64_t elements, std::int64_t bits) {
  return (saturating_multiply(elements, bits) + 7) / 8;
}

// The sizes in storage order, slowest-varying first; empty if the layout does not fit the shape.
std::vector<std::int64_t> stored_sizes(const HloShape& shape) {
  std::vector<std::int64_t> sizes;
  for (auto d = shape.layout->minor_to_major.rbegin(); d != shape.layout->minor_to_major.rend();
       ++d) {
    if (*d < 0 || *d >= std::ssize(shape.dimensions)) return shape.dimensions;
    sizes.push_back(shape.dimensions[static_cast<std::size_t>(*d)]);
  }
  return sizes.size() == shape.dimensions.size() ? sizes : shape.dimensions;
}

// Splits the fastest dimensions into tiles: [.., d] by (t) becomes [.., ceil(d / t), t].
void apply_tile(const std::vector<std::int64_t>& tile, std::vector<std::int64_t>& sizes) {
  auto take_fastest = [&] {
    std::int64_t size = sizes.empty() ? 1 : sizes.back();
    if (!sizes.empty()) sizes.pop_back();
    return size;
  };
  std::vector<std::int64_t> blocks, inside;
  for (std::size_t i = tile.size(); i-- > 0;) {
    std::int64_t block = std::clamp<std::int64_t>(tile[i], 1, kMostCounted);
    std::int64_t size = take_fastest();
    for (; i > 0 && tile[i - 1] == HloLayout::kCombine; --i)
      size = saturating_multiply(size, take_fastest());
    blocks.push_back(size <= 0 ? 0 : (size - 1) / block + 1);
    inside.push_back(block);
  }
  sizes.insert(sizes.end(), blocks.rbegin(), blocks.rend());
  sizes.insert(sizes.end(), inside.rbegin(), inside.rend());
}

Result<std::vector<std::int64_t>> read_tile(std::string_view bytes) {
  std::vector<std::int64_t> to;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a layout", field(1, to)));
  return to;
}

Result<HloLayout> read_layout(std::string_view bytes) {
  HloLayout to;
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a layout", field(1, to.minor_to_major),
                                       field(6, to.tiles, read_tile), field(7, to.element_bits),
                                       field(8, to.memory_space)));
  return to;
}

Result<HloShape> read_nested(std::string_view bytes, int depth) {
  constexpr std::uint64_t kTuple = 13;
  if (depth > kMostNesting) return pjrt::damaged("a shape");
  HloShape to;
  auto element = [&](const WireField& from) {
    to.is_tuple = from.value == kTuple;
    to.element = pjrt::element_type_of_primitive(static_cast<int>(from.value));
  };
  auto part = [&](std::string_view inner) { return read_nested(inner, depth + 1); };
  MESHARD_RETURN_IF_ERROR(read_message(bytes, "a shape", on_field(2, element),
                                       field(3, to.dimensions), field(4, to.tuple, part),
                                       field(5, to.layout, read_layout)));
  return to;
}

using ElementTypes = std::array<pjrt::ElementType, kDTypeCount>;

const ElementTypes& element_types() {
  static const ElementTypes all = [] {
    ElementTypes types{};
    for (std::size_t i = 0; i < types.size(); ++i)
      types[i] = pjrt::parse_element_type(stablehlo_name(static_cast<DType>(i))).value();
    return types;
  }();
  return all;
}

}  // namespace

namespace internal {
Result<HloShape> read_shape(std::string_view bytes) { return read_nested(bytes, 0); }
}  // namespace internal

std::int64_t HloShape::element_count() const {
  std::int64_t count = 1;
  for (std::int64_t extent : dimensions) count = saturating_multiply(count, extent);
  return count;
}

std::int64_t HloShape::byte_size() const {
  if (is_tuple) {
    std::int64_t sum = 0;
    for (const HloShape& part : tuple) sum = saturating_add(sum, part.byte_size());
    return sum;
  }
  return bytes_of(element_count(), bit_width(element));
}

std::int64_t HloShape::padded_byte_size() const {
  if (is_tuple) {
    std::int64_t sum = 0;
    for (const HloShape& part : tuple) sum = saturating_add(sum, part.padded_byte_size());
    return sum;
  }
  if (!layout || bit_width(element) == 0) return byte_size();
  std::vector<std::int64_t> sizes = stored_sizes(*this);
  for (const auto& tile : layout->tiles) apply_tile(tile, sizes);
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count = saturating_multiply(count, size);
  bool own_bits = layout->element_bits > 0 && layout->element_bits <= 128;
  return bytes_of(count, own_bits ? layout->element_bits : bit_width(element));
}

bool HloShape::in_main_memory() const {
  if (is_tuple) return tuple.empty() || tuple.front().in_main_memory();
  return !layout || layout->memory_space == 0;
}

std::string HloShape::to_string() const {
  if (is_tuple) return cat("(", join(tuple, ", "), ")");
  return cat(pjrt::to_string(element), "[", join(dimensions, ","), "]");
}

pjrt::ElementType element_type_of(DType dtype) {
  return element_types()[static_cast<std::size_t>(dtype)];
}

Result<DType> dtype_of_element(pjrt::ElementType element) {
  const ElementTypes& all = element_types();
  auto found = std::ranges::find(all, element);
  if (found != all.end()) return static_cast<DType>(found - all.begin());
  return Error(ErrorCode::kUnimplemented,
               cat("[runtime] meshard has no dtype for the plugin's element type number ",
                   static_cast<int>(element)));
}

}  // namespace meshard
