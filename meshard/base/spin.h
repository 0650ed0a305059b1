// Waits for a moment without sleeping.
#pragma once
#include <chrono>

namespace meshard::internal {

/// Tells the processor that a loop waits for another thread.
inline void pause_a_moment() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Calls `done()` until it is true, at most for about `time`. Returns what it said last.
template <class Done>
bool spin_until(Done done, std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause_a_moment();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace meshard::internal
