#include "meshard/hlo/shape.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/saturating.h"
#include "meshard/hlo/internal/reader.h"
#include "meshard/pjrt/executable_signature.h"

// Field numbers are those of ShapeProto, LayoutProto and TileProto of xla/xla_data.proto.
namespace meshard {
namespace {

using pjrt::WireReader;

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

Result<HloLayout> read_layout(std::string_view bytes) {
  HloLayout layout;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    bool good = true;
    switch (field->number) {
      case 1: good = append_numbers(*field, layout.minor_to_major); break;
      case 6: {
        std::vector<std::int64_t> tile;
        WireReader fields(field->bytes);
        while (auto one = fields.next())
          if (one->number == 1) good = good && append_numbers(*one, tile);
        good = good && fields.ok();
        layout.tiles.push_back(std::move(tile));
        break;
      }
      case 7: layout.element_bits = field->as_int(); break;
      case 8: layout.memory_space = field->as_int(); break;
      default: break;
    }
    if (!good) return internal::damaged("a layout");
  }
  if (!reader.ok()) return internal::damaged("a layout");
  return layout;
}

Result<HloShape> read_nested(std::string_view bytes, int depth) {
  constexpr std::uint64_t kTuple = 13;
  if (depth > kMostNesting) return internal::damaged("a shape");
  HloShape shape;
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    switch (field->number) {
      case 2:
        shape.is_tuple = field->value == kTuple;
        shape.element = pjrt::element_type_of_primitive(static_cast<int>(field->value));
        break;
      case 3:
        if (!append_numbers(*field, shape.dimensions)) return internal::damaged("a shape");
        break;
      case 4: {
        MESHARD_ASSIGN_OR_RETURN(HloShape part, read_nested(field->bytes, depth + 1));
        shape.tuple.push_back(std::move(part));
        break;
      }
      case 5: {
        MESHARD_ASSIGN_OR_RETURN(shape.layout, read_layout(field->bytes));
        break;
      }
      default: break;
    }
  }
  if (!reader.ok()) return internal::damaged("a shape");
  return shape;
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

}  // namespace meshard
