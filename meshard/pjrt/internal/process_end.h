// The end of the process: from then on only the thread that ends it starts work in the plugin.
#pragma once
#include <atomic>

namespace meshard::pjrt::internal {

/// Called by the thread that ends the process, before static objects are destroyed. Work that other
/// threads have in the plugin is awaited, but for launches that are under way; what they start
/// later waits until the process is gone, because plugins do not survive a launch or a compilation
/// beside `exit`. If the main thread ended alone (pthread_exit), the others go on.
void hold_other_threads();

/// This thread may start work until the process is gone: it is waited for.
void never_hold_this_thread();
/// Whether this thread has to be held back: another one ends the process.
bool is_held();
/// Returns if the process goes on after all. @pre no lock is held
void stay_until_the_end();

/// Work in the plugin that is no launch: compiling, transfers.
class PluginWork {
 public:
  PluginWork() {
    while (true) {
      inside_.fetch_add(1);
      if (!is_held()) [[likely]]
        return;
      inside_.fetch_sub(1);
      stay_until_the_end();
    }
  }
  ~PluginWork() { inside_.fetch_sub(1); }
  PluginWork(const PluginWork&) = delete;
  PluginWork& operator=(const PluginWork&) = delete;

 private:
  friend void hold_other_threads();
  static inline constinit std::atomic<int> inside_ = 0;
};

}  // namespace meshard::pjrt::internal
