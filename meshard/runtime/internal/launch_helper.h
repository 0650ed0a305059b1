// A thread that makes some of the plugin's calls of a launch device by device.
#pragma once
#include <cstddef>

#include "meshard/base/function_ref.h"

namespace meshard::internal {

/// One thread of the process, which shares the work of launching threads. Threads take one piece
/// after the other, so that a helper that comes late, or not at all, costs nothing.
class LaunchHelper {
 public:
  /// Calls work(0), ..., work(count - 1), each once, in this thread and the helper's, in any order.
  /// Returns when all have returned.
  /// @error an exception of `work`, after which no more pieces are begun
  static void share(std::size_t count, FunctionRef<void(std::size_t)> work);
  /// The calls that the helper has made.
  static std::size_t calls() noexcept;
};

}  // namespace meshard::internal
