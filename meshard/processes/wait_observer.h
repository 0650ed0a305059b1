// Reports when a process waits for others, so that traces show it.
#pragma once
#include <atomic>
#include <chrono>
#include <string_view>

namespace meshard {

/// Called after each barrier (category `barrier`, its name) and each collective that a program
/// calls (category `collective`, its kind and source line), on the thread that has waited.
using WaitObserver = void (*)(std::string_view category, std::string_view what,
                              std::string_view place, std::chrono::steady_clock::time_point start,
                              std::chrono::steady_clock::time_point end);

/// Null without an observer; a wait then costs one additional load.
inline std::atomic<WaitObserver> wait_observer{nullptr};

/// A wait from its construction to the end of the scope. The texts must outlive it.
class ObservedWait {
 public:
  ObservedWait(std::string_view category, std::string_view what, std::string_view place = {})
      : observer_(wait_observer.load(std::memory_order_acquire)) {
    if (!observer_) return;
    category_ = category;
    what_ = what;
    place_ = place;
    start_ = std::chrono::steady_clock::now();
  }
  ~ObservedWait() {
    if (observer_) observer_(category_, what_, place_, start_, std::chrono::steady_clock::now());
  }
  ObservedWait(const ObservedWait&) = delete;
  ObservedWait& operator=(const ObservedWait&) = delete;

 private:
  WaitObserver observer_;
  std::string_view category_, what_, place_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace meshard
