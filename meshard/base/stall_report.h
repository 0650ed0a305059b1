// Reports waits that take too long: what they wait for, and which work is in flight.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "meshard/base/source_location.h"

namespace meshard {

/// A value: a report of a wait that takes too long.
struct Stall {
  /// What the wait is for, its duration, and the launches in flight on each device.
  std::string text;
  /// The line of user code that waits, if known.
  SourceLocation where;

  /// `train.cc:42: [wait] waiting for 60 s for ...`
  std::string to_string() const;
};

using StallHandler = std::function<void(const Stall&)>;  ///< Receives a report of a stall.

/// Sets the function that is called once for each stall. It runs on the waiting thread, which
/// continues to wait afterward. The default handler writes to stderr, unless log_level() is
/// kOff; an empty one disables reports. If the handler throws, the wait ends with that exception.
void set_stall_handler(StallHandler handler);

/// How long a wait may take before it is reported. Default: MESHARD_STALL_SECONDS, else 60 s. Zero
/// disables reports.
std::chrono::milliseconds stall_time();
void set_stall_time(std::chrono::milliseconds time);

namespace internal {

/// Sets a function whose text is appended to each report; pjrt/ lists the launches in flight.
void set_stall_detail(std::string (*detail)());

void report_stall(const std::string& what, std::chrono::milliseconds waited);

/// While alive, attributes waits of this thread to the user's line `where`.
class WaitPlace {
 public:
  explicit WaitPlace(SourceLocation where) : outer_(current_) {
    if (where.known()) current_ = where;
  }
  ~WaitPlace() { current_ = outer_; }
  WaitPlace(const WaitPlace&) = delete;
  WaitPlace& operator=(const WaitPlace&) = delete;
  static SourceLocation current() { return current_; }

 private:
  static inline thread_local SourceLocation current_{};
  SourceLocation outer_;
};

/// Detects when a wait has taken too long.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// How long to wait before checking again.
  std::chrono::milliseconds slice() const;
  /// True once, when the wait has exceeded the limit.
  bool is_due();
  std::chrono::milliseconds waited() const;

 private:
  Clock::time_point begun_ = Clock::now();
  std::chrono::milliseconds limit_ = stall_time();
  bool reported_ = false;
};

/// Waits until `done()`, evaluated under `lock`, is true; `describe()` names what is waited for.
template <class Done, class Describe>
void wait_or_report(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Done done,
                    Describe describe) {
  if (done()) return;
  StallWatch watch;
  while (!changed.wait_for(lock, watch.slice(), done)) {
    if (!watch.is_due()) continue;
    std::string what = describe();
    lock.unlock();  // a handler may call anything
    report_stall(what, watch.waited());
    lock.lock();
  }
}

}  // namespace internal
}  // namespace meshard
