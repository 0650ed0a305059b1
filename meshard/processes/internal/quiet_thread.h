// Threads that do not take the program's signals.
#pragma once
#include <csignal>
#include <thread>
#include <utility>

namespace meshard::internal {

/// Starts a thread with all signals blocked, so that the program's own threads handle them.
template <class Function>
std::thread start_quiet_thread(Function function) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(function));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace meshard::internal
