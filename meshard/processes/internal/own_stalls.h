// Excuses the silence of others while this process itself did not run.
#pragma once
#include <chrono>

namespace meshard::internal {

using ProcessClock = std::chrono::steady_clock;

/// Times of the liveness protocol.
struct LivenessTimes {
  /// How often every process gives a sign of life.
  std::chrono::milliseconds beat{250};
  /// A process that was silent for so long is lost.
  std::chrono::milliseconds silence{3500};
};

/// Notices that a loop which runs at every beat did not: all processes of a terminal were
/// suspended, or the machine was. The time is then added to all deadlines, or the one that
/// continues first would declare the others lost.
class OwnStalls {
 public:
  OwnStalls(LivenessTimes times, ProcessClock::time_point now) : times_(times), last_(now) {}

  /// Called in each round of the loop. @return the time to add to deadlines, usually zero
  ProcessClock::duration take(ProcessClock::time_point now) {
    ProcessClock::duration gap = now - last_;
    last_ = now;
    return gap > 2 * times_.beat ? gap : ProcessClock::duration::zero();
  }

 private:
  LivenessTimes times_;
  ProcessClock::time_point last_;
};

}  // namespace meshard::internal
