// A thread that makes some of the plugin's calls of a launch device by device.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <exception>

#include "meshard/base/function_ref.h"
#include "meshard/base/threads.h"

namespace meshard::internal {

// Objects of the process that have a thread of their own.

/// The process's only T, whose run() a thread executes until the process ends. Never destroyed:
/// destructors of static objects may still use it.
template <class T>
class HelperThread {
 public:
  /// Starts the thread at the first call. Null if it would take the callers' only core, if the
  /// system has no more threads or memory, and in children of the process, which lack the thread.
  static T* get() {
    static T* object = start();
    return runs_.load(std::memory_order_acquire) ? object : nullptr;
  }
  /// The same, but null if it has not started yet.
  static T* get_started() { return runs_.load(std::memory_order_acquire) ? get() : nullptr; }

 private:
  static T* start() {
    if (usable_cores() < 2) return nullptr;
    try {
      auto* object = new T;
      start_quiet_thread([object] { object->run(); }).detach();
      pthread_atfork(nullptr, nullptr, [] { runs_ = false; });
      runs_.store(true, std::memory_order_release);
      return object;
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  static inline std::atomic<bool> runs_ = false;
};

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
