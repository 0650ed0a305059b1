// A thread that destroys buffers.
#pragma once
#include <cstddef>

#include "meshard/pjrt/internal/released_buffers.h"

namespace meshard::pjrt::internal {

/// Destroying a small buffer takes the CPU plugin about 4,000 instructions, 30 times what it takes
/// to launch for it: with 20 parameters on 8 devices, 5 of 6 instructions of a thread that launches
/// without a pause. One thread of the process does this beside the launches.
class ReleaseThread {
 public:
  /// Fewer are not worth waking it, which takes as long as destroying about ten.
  static constexpr std::size_t kLeastBuffers = 64;

  /// Whether there is such a thread: not in a process with one core. Starts it.
  static bool runs() noexcept;
  /// Hands the batch to the thread. @return false: the caller keeps it, because it is small, the
  /// thread is behind, or there is none
  static bool take(ReleasedBatch& batch) noexcept;
  /// Waits until all batches that were taken before are destroyed.
  static void drain() noexcept;
};

}  // namespace meshard::pjrt::internal
