// Boxes of arrays of a shape, and strided copies between them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/base/box.h"

namespace meshard {

// Copies of one contiguous row of bytes.

/// How a copy writes its destination.
enum class CopyWrites {
  /// Through the caches, where later reads find it.
  kCached,
  /// Past the caches, as memcpy does with very long rows. Each cache line of the destination is
  /// then written without having been read, so a large copy moves a third fewer bytes. For
  /// destinations that are larger than the caches; on processors other than x86 as kCached.
  kStreamed,
};

/// Copies `bytes` bytes with streaming stores, except for the parts of the first and the last cache
/// line. A thread that has copied rows this way calls finish_streaming() before it tells others.
/// @pre the ranges do not overlap
void stream_row(std::byte* destination, const std::byte* source, std::size_t bytes);

/// Orders the streaming stores so far before all later stores of this thread.
void finish_streaming();

/// The box that covers a whole array of this shape.
Box whole_box(const Shape& shape);
/// The shape of the elements inside a box.
Shape box_shape(const Box& box);
/// Checks a box. @error out of range, naming the dimension, if it is not inside the shape.
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

// What two boxes of one array have in common, and where their elements are.

/// The elements that are in both boxes; nothing if there are none.
/// @pre both have the same number of dimensions
std::optional<Box> overlap(const Box& a, const Box& b);

/// The box `inner` in an array that holds only `outer`: its indices begin where `outer` does.
/// @pre both have the same number of dimensions
Box relative_to(const Box& outer, Box inner);

/// The row-major numbers, in an array of these sizes, of the elements in a box, in row-major order.
/// @pre as many sizes as the box has dimensions, or more, which are ignored
std::vector<std::int64_t> numbers_in(const Box& box, std::span<const std::int64_t> sizes);

/// The number of the first element of a box of a row-major array, if the box is contiguous there.
/// @pre the box is inside
std::optional<std::int64_t> contiguous_at(const Box& box, const Shape& shape);

}  // namespace meshard
