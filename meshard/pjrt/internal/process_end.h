// The end of the process: only the thread that ends it may still start work in a plugin.
#pragma once
#include <atomic>

namespace meshard::pjrt::internal {

/// Called by the thread that ends the process, before static objects are destroyed. Waits for the
/// work that other threads have in the plugin, except launches in flight. Work that they start
/// later blocks until the process is gone, because plugins crash if a launch or compilation runs
/// concurrently with `exit`. If only the main thread ended (pthread_exit), the other threads
/// continue.
void hold_other_threads();

/// Exempts this thread from being held, because the end of the process waits for it.
void never_hold_this_thread();
/// Whether this thread must be held because another one ends the process.
bool is_held();
/// Blocks this thread; returns only if the process continues after all. @pre no lock is held
void stay_until_the_end();

/// Scope of work in the plugin other than a launch: compiling, transfers.
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
