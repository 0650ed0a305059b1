// Waits that take too long are reported: with what is waited for, and what is under way.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "meshard/base/source_location.h"

namespace meshard {

/// A value: a wait that takes too long.
struct Stall {
  /// What is waited for and for how long, and which launches are in flight on which devices.
  std::string text;
  /// The user's line that waits, if it is known.
  SourceLocation where;

  /// `train.cc:42: waiting for 60 s for ...`
  std::string to_string() const;
};

using StallHandler = std::function<void(const Stall&)>;

/// Calls `handler` with each stall, once, from the thread that waits, which goes on waiting after
/// it. The default handler writes to the standard error stream; an empty one says nothing. A
/// handler that throws ends the wait with its exception.
void set_stall_handler(StallHandler handler);

/// How long a wait may take before it is reported: MESHARD_STALL_SECONDS, else 60 s. Zero: no wait
/// is ever reported.
std::chrono::milliseconds stall_time();
void set_stall_time(std::chrono::milliseconds time);

namespace internal {

/// Texts about what is under way end each report: pjrt/ says which launches are in flight.
void set_stall_detail(std::string (*detail)());

void report_stall(const std::string& what, std::chrono::milliseconds waited);

/// Until it is destroyed, waits of this thread are the user's line `where`.
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

/// Notices when a wait has taken too long.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// How long to wait before asking again.
  std::chrono::milliseconds slice() const;
  /// True once: when the wait has become too long.
  bool is_due();
  std::chrono::milliseconds waited() const;

 private:
  Clock::time_point begun_ = Clock::now();
  std::chrono::milliseconds limit_ = stall_time();
  bool reported_ = false;
};

/// Waits until `done`, a question asked under `lock`; `describe` says what is waited for.
template <class Done, class Describe>
void wait_or_report(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Done done,
                    Describe describe) {
  if (done()) return;
  StallWatch watch;
  while (!changed.wait_for(lock, watch.slice(), done)) {
    if (!watch.is_due()) continue;
    std::string what = describe();
    lock.unlock();  // a handler may ask for anything
    report_stall(what, watch.waited());
    lock.lock();
  }
}

}  // namespace internal
}  // namespace meshard
