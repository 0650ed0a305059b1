// An object for each thread that may be used while the thread or the process ends.
#pragma once
#include <pthread.h>

namespace meshard::internal {

/// The T of this thread, made when it is first asked for. A plain thread_local must not be used
/// after its destructor, but destructors of other objects may launch: the T of a thread is
/// destroyed after all its thread_local objects, and made (and destroyed) again if it is asked
/// for later still. That of the main thread lives as long as the process.
template <class T>
T& thread_instance() {
  static constinit thread_local T* instance = nullptr;
  if (instance == nullptr) [[unlikely]] {
    // The destructors of keys run after those of thread_local objects, again while they set
    // values (POSIX: at least four times), and never for the main thread.
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
