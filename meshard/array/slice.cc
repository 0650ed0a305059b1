#include "meshard/array/slice.h"

#include <algorithm>
#include <cstring>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace meshard {

#ifdef __SSE2__

void stream_row(std::byte* destination, const std::byte* source, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  std::size_t head = -reinterpret_cast<std::uintptr_t>(destination) % kLine;
  head = std::min(head, bytes);
  std::memcpy(destination, source, head);
  destination += head;
  source += head;
  bytes -= head;
  for (; bytes >= kLine; bytes -= kLine, destination += kLine, source += kLine) {
    const auto* from = reinterpret_cast<const __m128i*>(source);
    auto* to = reinterpret_cast<__m128i*>(destination);
    __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2),
            d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  std::memcpy(destination, source, bytes);
}

void finish_streaming() { _mm_sfence(); }

#else

void stream_row(std::byte* destination, const std::byte* source, std::size_t bytes) {
  std::memcpy(destination, source, bytes);
}

void finish_streaming() {}

#endif

namespace {

/// The byte offset of a box's first element from the array's first element.
std::int64_t box_offset(const Dimensions& strides, const Box& box) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < box.size(); ++i) offset += strides[i] * box[i].start;
  return offset;
}

/// Merges dimensions that are contiguous on both sides, drops those of size 1, and makes the
/// innermost contiguous run the row. `sizes` are the sizes of the box; strides are in bytes.
StridedCopy make_plan(const std::byte* source, const Dimensions& source_strides,
                      std::byte* destination, const Dimensions& destination_strides,
                      const Dimensions& sizes, std::int64_t element_bytes) {
  StridedCopy plan{source, destination, element_bytes, {}};
  bool row = true;  // whether the contiguous row can still grow
  InlineVector<StridedCopy::Level, 6> inner_first;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    StridedCopy::Level level{sizes[i], source_strides[i], destination_strides[i]};
    if (level.count == 0) return {source, destination, 0, {}};
    if (level.count == 1) continue;
    if (row && level.source_stride == plan.row_bytes &&
        level.destination_stride == plan.row_bytes) {
      plan.row_bytes *= level.count;
      continue;
    }
    row = false;
    if (!inner_first.empty()) {
      StridedCopy::Level& last = inner_first.back();
      if (level.source_stride == last.source_stride * last.count &&
          level.destination_stride == last.destination_stride * last.count) {
        last.count *= level.count;
        continue;
      }
    }
    inner_first.push_back(level);
  }
  for (std::size_t i = inner_first.size(); i-- > 0;) plan.levels.push_back(inner_first[i]);
  return plan;
}

// A shorter row may have no whole cache line.
constexpr std::int64_t kShortestStreamed = 256;

template <std::size_t kBytes>
void copy_rows(const std::byte* source, std::byte* destination, const StridedCopy::Level& level) {
  for (std::int64_t i = 0; i < level.count; ++i) {
    std::memcpy(destination, source, kBytes);  // constant size: compiles to a load and a store
    source += level.source_stride;
    destination += level.destination_stride;
  }
}

void copy_rows(const std::byte* source, std::byte* destination, const StridedCopy::Level& level,
               std::int64_t row_bytes) {
  switch (row_bytes) {
    case 1: return copy_rows<1>(source, destination, level);
    case 2: return copy_rows<2>(source, destination, level);
    case 4: return copy_rows<4>(source, destination, level);
    case 8: return copy_rows<8>(source, destination, level);
    case 16: return copy_rows<16>(source, destination, level);
    case 32: return copy_rows<32>(source, destination, level);
    default: break;
  }
  for (std::int64_t i = 0; i < level.count; ++i) {
    std::memcpy(destination, source, static_cast<std::size_t>(row_bytes));
    source += level.source_stride;
    destination += level.destination_stride;
  }
}

void stream_rows(const std::byte* source, std::byte* destination, const StridedCopy::Level& level,
                 std::int64_t row_bytes) {
  for (std::int64_t i = 0; i < level.count; ++i) {
    stream_row(destination, source, static_cast<std::size_t>(row_bytes));
    source += level.source_stride;
    destination += level.destination_stride;
  }
}

using CopyRows = void(const std::byte*, std::byte*, const StridedCopy::Level&, std::int64_t);

void run_levels(const std::byte* source, std::byte* destination, std::int64_t row_bytes,
                std::span<const StridedCopy::Level> levels, CopyRows* rows) {
  if (levels.size() == 1) return rows(source, destination, levels[0], row_bytes);
  for (std::int64_t i = 0; i < levels[0].count; ++i) {
    run_levels(source, destination, row_bytes, levels.subspan(1), rows);
    source += levels[0].source_stride;
    destination += levels[0].destination_stride;
  }
}

/// Splits a single row into pieces, at multiples of 64 bytes.
void split_row(const StridedCopy& plan, std::int64_t piece_bytes,
               std::vector<StridedCopy>& pieces) {
  std::int64_t step = std::max<std::int64_t>(64, piece_bytes / 64 * 64);
  for (std::int64_t start = 0; start < plan.row_bytes; start += step)
    pieces.push_back({plan.source + start,
                      plan.destination + start,
                      std::min(step, plan.row_bytes - start),
                      {}});
}

void split_into(const StridedCopy& plan, std::int64_t piece_bytes,
                std::vector<StridedCopy>& pieces) {
  std::int64_t bytes = plan.bytes();
  if (bytes <= piece_bytes) return pieces.push_back(plan);
  if (plan.levels.empty()) return split_row(plan, piece_bytes, pieces);
  const StridedCopy::Level outer = plan.levels[0];
  std::int64_t slab = bytes / outer.count;
  if (slab > piece_bytes) {
    StridedCopy inner = plan;
    inner.levels.erase(inner.levels.begin());
    for (std::int64_t i = 0; i < outer.count; ++i) {
      split_into(inner, piece_bytes, pieces);
      inner.source += outer.source_stride;
      inner.destination += outer.destination_stride;
    }
    return;
  }
  std::int64_t step = piece_bytes / slab;
  for (std::int64_t start = 0; start < outer.count; start += step) {
    StridedCopy piece = plan;
    piece.source += start * outer.source_stride;
    piece.destination += start * outer.destination_stride;
    piece.levels[0].count = std::min(step, outer.count - start);
    pieces.push_back(std::move(piece));
  }
}

}  // namespace

Box whole_box(const Shape& shape) {
  Box box;
  for (std::int64_t size : shape) box.push_back({0, size});
  return box;
}

Shape box_shape(const Box& box) {
  Dimensions sizes;
  for (const DimensionSlice& slice : box) sizes.push_back(slice.size());
  return Shape(std::move(sizes));
}

void check_box(const Box& box, const Shape& shape, std::string_view place, SourceLocation where) {
  if (box.size() != static_cast<std::size_t>(shape.rank()))
    throw Error(
        ErrorCode::kInvalidArgument,
        cat("[", place, "] a box of ", box.size(), " dimensions for an array of shape ", shape),
        where);
  for (std::size_t i = 0; i < box.size(); ++i)
    if (box[i].start < 0 || box[i].start > box[i].stop || box[i].stop > shape.sizes()[i])
      throw Error(ErrorCode::kOutOfRange,
                  cat("[", place, "] slice ", box[i], " of dimension ", i,
                      " is outside 0:", shape.sizes()[i], " (shape ", shape, ")"),
                  where);
}

std::int64_t StridedCopy::bytes() const {
  std::int64_t product = row_bytes;
  for (const Level& level : levels) product *= level.count;
  return product;
}

void StridedCopy::run(CopyWrites writes) const {
  if (row_bytes == 0) return;
  if (writes == CopyWrites::kStreamed && row_bytes >= kShortestStreamed) {
    if (levels.empty())
      stream_row(destination, source, static_cast<std::size_t>(row_bytes));
    else
      run_levels(source, destination, row_bytes, levels, stream_rows);
    finish_streaming();
  } else if (levels.empty()) {
    std::memcpy(destination, source, static_cast<std::size_t>(row_bytes));
  } else {
    run_levels(source, destination, row_bytes, levels, copy_rows);
  }
}

std::vector<StridedCopy> StridedCopy::split(std::int64_t piece_bytes) const {
  std::vector<StridedCopy> pieces;
  if (row_bytes != 0) split_into(*this, std::max<std::int64_t>(piece_bytes, 1), pieces);
  return pieces;
}

StridedCopy plan_copy(const void* source, const Shape& source_shape, const Box& source_box,
                      void* destination, const Shape& destination_shape, const Box& destination_box,
                      std::size_t element_bytes) {
  auto width = static_cast<std::int64_t>(element_bytes);
  Dimensions source_strides = source_shape.strides();
  Dimensions destination_strides = destination_shape.strides();
  for (std::int64_t& stride : source_strides) stride *= width;
  for (std::int64_t& stride : destination_strides) stride *= width;
  Dimensions sizes;
  for (const DimensionSlice& slice : source_box) sizes.push_back(slice.size());
  // The start of an empty box may be past the end of an array without bytes.
  bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  std::int64_t from = empty ? 0 : box_offset(source_strides, source_box);
  std::int64_t to = empty ? 0 : box_offset(destination_strides, destination_box);
  return make_plan(static_cast<const std::byte*>(source) + from, source_strides,
                   static_cast<std::byte*>(destination) + to, destination_strides, sizes, width);
}

StridedCopy plan_gather(const void* source, const Shape& whole, const Box& box,
                        std::size_t element_bytes, void* destination) {
  Shape dense = box_shape(box);
  return plan_copy(source, whole, box, destination, dense, whole_box(dense), element_bytes);
}

StridedCopy plan_scatter(const void* source, void* destination, const Shape& whole, const Box& box,
                         std::size_t element_bytes) {
  Shape dense = box_shape(box);
  return plan_copy(source, dense, whole_box(dense), destination, whole, box, element_bytes);
}

std::optional<Box> overlap(const Box& a, const Box& b) {
  Box both = a;
  for (std::size_t d = 0; d < both.size(); ++d) {
    both[d].start = std::max(a[d].start, b[d].start);
    both[d].stop = std::min(a[d].stop, b[d].stop);
    if (both[d].start >= both[d].stop) return std::nullopt;
  }
  return both;
}

Box relative_to(const Box& outer, Box inner) {
  for (std::size_t d = 0; d < inner.size(); ++d) {
    inner[d].start -= outer[d].start;
    inner[d].stop -= outer[d].start;
  }
  return inner;
}

std::vector<std::int64_t> numbers_in(const Box& box, std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> numbers{0};
  for (std::size_t d = 0; d < box.size(); ++d) {
    std::vector<std::int64_t> next;
    for (std::int64_t number : numbers)
      for (std::int64_t i = box[d].start; i < box[d].stop; ++i)
        next.push_back(number * sizes[d] + i);
    numbers = std::move(next);
  }
  return numbers;
}

std::optional<std::int64_t> contiguous_at(const Box& box, const Shape& shape) {
  std::size_t d = 0;
  while (d < box.size() && box[d].size() == 1) ++d;
  for (++d; d < box.size(); ++d)
    if (box[d].size() != shape[static_cast<std::int64_t>(d)]) return std::nullopt;
  const Dimensions strides = shape.strides();
  std::int64_t first = 0;
  for (std::size_t i = 0; i < box.size(); ++i) first += box[i].start * strides[i];
  return first;
}

}  // namespace meshard
