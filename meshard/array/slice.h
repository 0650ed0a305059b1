// Boxes of arrays of a shape, and strided copies between them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "meshard/array/copy_row.h"
#include "meshard/array/shape.h"
#include "meshard/base/box.h"

namespace meshard {

/// The box that covers a whole array of this shape.
Box whole_box(const Shape& shape);
/// The shape of the elements inside a box.
Shape box_shape(const Box& box);
/// @error out of range, naming the dimension, if the box is not inside the shape.
void check_box(const Box& box, const Shape& shape, std::string_view place = "slice",
               SourceLocation where = SourceLocation::current());

/// A value: the plan of a copy of equally long rows from `source` to `destination`. `levels`
/// describes the outer dimensions, slowest first; strides are in bytes. A plan can be split into
/// independent pieces for several threads.
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

  /// The total number of bytes copied.
  std::int64_t bytes() const;
  /// Performs the copy. Rows that are too short for it are never streamed.
  /// @pre source and destination do not overlap
  void run(CopyWrites writes = CopyWrites::kCached) const;
  /// Splits the copy into pieces of at most `piece_bytes` that write to disjoint memory. A long row
  /// is split at multiples of 64 bytes, so its pieces may have 64 bytes even if `piece_bytes` is
  /// smaller.
  std::vector<StridedCopy> split(std::int64_t piece_bytes) const;
};

/// Plans the copy of a box of a row-major array of shape `whole` to a dense buffer.
/// @pre `source` holds the whole array, `destination` the box; the box is inside (see check_box).
StridedCopy plan_gather(const void* source, const Shape& whole, const Box& box,
                        std::size_t element_bytes, void* destination);
/// Plans the copy of a dense buffer into a box of a row-major array of shape `whole`.
StridedCopy plan_scatter(const void* source, void* destination, const Shape& whole, const Box& box,
                         std::size_t element_bytes);
/// Plans the copy of a box between two row-major arrays.
/// @pre both boxes are inside their arrays and have the same shape.
StridedCopy plan_copy(const void* source, const Shape& source_shape, const Box& source_box,
                      void* destination, const Shape& destination_shape, const Box& destination_box,
                      std::size_t element_bytes);

}  // namespace meshard
