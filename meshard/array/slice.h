// Boxes of arrays: which part of a whole array a shard is, and the copies between them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/shape.h"

namespace meshard {

/// A value: the indices start, start + 1, ... stop - 1 of one dimension. Prints as `2:4`.
struct DimensionSlice {
  std::int64_t start = 0;
  std::int64_t stop = 0;

  std::int64_t size() const { return stop - start; }
  std::string to_string() const;
  static Result<DimensionSlice> parse(std::string_view text);
  friend bool operator==(const DimensionSlice&, const DimensionSlice&) = default;
};

/// One slice for each dimension of an array.
using Box = InlineVector<DimensionSlice, 4>;

/// The box that covers an array of this shape.
Box whole_box(const Shape& shape);
/// The shape of the elements inside.
Shape box_shape(const Box& box);
/// @error out of range, naming the dimension, if the box is not inside the shape.
void check_box(const Box& box, const Shape& shape, std::string_view place = "slice",
               SourceLocation where = SourceLocation::current());

/// A value: rows of one length, each moved from `source` to `destination`. The offsets of the outer
/// dimensions are listed slowest first; strides are in bytes.
///
/// It is the plan of a copy, and can be cut into independent pieces for several threads.
struct StridedCopy {
  struct Level {
    std::int64_t count;
    std::int64_t source_stride;
    std::int64_t destination_stride;
    friend bool operator==(const Level&, const Level&) = default;
  };
  const std::byte* source = nullptr;
  std::byte* destination = nullptr;
  std::int64_t row_bytes = 0;
  InlineVector<Level, 4> levels;

  /// Bytes moved in all.
  std::int64_t bytes() const;
  /// Moves them. The two sides must not overlap.
  void run() const;
  /// Pieces that together move the same bytes, none of them (unless a single row is longer) of many
  /// more than `piece_bytes`. A long row is cut at multiples of 64 bytes. Pieces write to disjoint
  /// places.
  std::vector<StridedCopy> split(std::int64_t piece_bytes) const;
};

/// Plans the copy of a box of a row-major array of `whole` into a dense buffer.
/// @pre `source` holds the whole array, `destination` the box; the box is inside (see check_box).
StridedCopy plan_gather(const void* source, const Shape& whole, const Box& box,
                        std::size_t element_bytes, void* destination);
/// Plans the copy of a dense buffer into a box of a row-major array of `whole`.
StridedCopy plan_scatter(const void* source, void* destination, const Shape& whole, const Box& box,
                         std::size_t element_bytes);
/// Plans the copy of a box of one row-major array into an equally large box of another.
/// @pre both boxes are inside and have the same shape.
StridedCopy plan_copy(const void* source, const Shape& source_shape, const Box& source_box,
                      void* destination, const Shape& destination_shape, const Box& destination_box,
                      std::size_t element_bytes);

}  // namespace meshard
