// Waits for launches at process exit.
#pragma once
#include <cstdint>

namespace meshard::internal {

/// Lets the process wait for its launches when `exit` runs the handlers that were added before.
void add_exit_handler();

/// Called after each launch; ensures that the process waits for launches in flight before it ends.
///
/// A plugin creates static objects when it first compiles and runs programs, some of them in its
/// own threads. At exit they are destroyed in reverse order, while those threads may still use
/// them. If the main thread exits, a thread-local object of that thread waits: the C library
/// destroys it before all static objects. Handlers of std::atexit also wait, for other threads that
/// call exit and for launches in the destructors of static objects. A handler must be registered
/// after the objects that it protects, so one is registered at launches number 1, 2, 4, 8, ...
inline void wait_at_exit(std::uint64_t launches) {
  if ((launches & (launches - 1)) == 0) [[unlikely]]
    add_exit_handler();
}

}  // namespace meshard::internal
