// Threads of the library: starting them, waiting briefly, and thread-local data.
#pragma once
#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

namespace meshard::internal {

// The number of cores that the process may use.

/// The cores of the calling thread's affinity mask, which containers and `taskset` restrict;
/// CPU_SETSIZE if
/// the machine has more than a cpu_set_t holds.
inline int usable_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : CPU_SETSIZE;
}

// Waits for a moment without sleeping.

/// Tells the processor that a loop waits for another thread.
inline void pause_a_moment() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Calls `done()` until it is true, at most for about `time`. Returns its last result.
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

// Threads that do not take the program's signals.

/// Whether start_quiet_thread() has started this thread.
inline thread_local bool is_quiet_thread = false;

/// Starts a thread with all signals blocked, so that the program's own threads handle them.
/// @error std::system_error if the system has no more threads
template <class Function>
std::thread start_quiet_thread(Function function) {
  struct Blocked {
    Blocked() {
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    sigset_t before;
  } blocked;
  return std::thread([function = std::move(function)]() mutable {
    is_quiet_thread = true;
    function();
  });
}

// A per-thread object that remains usable while the thread or the process exits.

/// The T of this thread, created on first use. A plain thread_local must not be used after its
/// destructor runs, but destructors of other objects may launch programs. So each thread's T is
/// destroyed after all its thread_local objects, and is created (and destroyed) again if it is used
/// later. The main thread's T is never destroyed.
template <class T>
T& thread_instance() {
  static constinit thread_local T* instance = nullptr;
  if (instance == nullptr) [[unlikely]] {
    // Destructors of pthread keys run after those of thread_local objects, are repeated while they
    // set values (POSIX: at least four times), and never run for the main thread.
    static const pthread_key_t at_end = [] {
      pthread_key_t key;
      const auto destroy = [](void* object) {
        instance = nullptr;
        delete static_cast<T*>(object);
      };
      pthread_key_create(&key, destroy);
      return key;
    }();
    instance = new T();
    pthread_setspecific(at_end, instance);
  }
  return *instance;
}

}  // namespace meshard::internal
