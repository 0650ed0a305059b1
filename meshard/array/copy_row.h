// Copies of one contiguous row of bytes.
#pragma once
#include <cstddef>

namespace meshard {

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

}  // namespace meshard
