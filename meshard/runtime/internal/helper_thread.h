// Objects of the process that have a thread of their own.
#pragma once
#include <pthread.h>

#include <atomic>
#include <exception>

#include "meshard/base/quiet_thread.h"
#include "meshard/base/usable_cores.h"

namespace meshard::internal {

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

}  // namespace meshard::internal
