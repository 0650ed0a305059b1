// A per-thread object that remains usable while the thread or the process exits.
#pragma once
#include <pthread.h>

namespace meshard::internal {

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
