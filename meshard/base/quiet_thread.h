// Threads that do not take the program's signals.
#pragma once
#include <csignal>
#include <thread>
#include <utility>

namespace meshard::internal {

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

}  // namespace meshard::internal
