// What a process waits for, as its signs of life say, and which processes wait for each other.
#pragma once
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/awaiting.h"

namespace meshard::internal {

// Excuses the silence of others while this process itself did not run.

using ProcessClock = std::chrono::steady_clock;

/// Times of the liveness protocol.
struct LivenessTimes {
  /// How often every process gives a sign of life.
  std::chrono::milliseconds beat{250};
  /// A process that has been silent for this time is lost.
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

/// A value: what a sign of life says about waits.
struct ProcessStatus {
  /// A wait that has lasted for `age`.
  struct Wait {
    std::string what;
    std::vector<SharedStep> steps;  // empty: for work of the same process
    std::chrono::milliseconds age{0};
    MESHARD_FIELDS(what, steps, age)
  };
  /// It has returned from main, or left the run.
  bool has_ended = false;
  /// Of the threads that run the program, which goes on when one of them ends; empty if it runs.
  std::vector<Wait> program = {};
  /// The waits of its devices and other threads.
  std::vector<Wait> others = {};
  /// The steps that it has come to.
  std::vector<std::pair<std::string, std::uint64_t>> reached = {};

  MESHARD_FIELDS(has_ended, program, others, reached)
  /// Of this process.
  static ProcessStatus of(const AllAwaiting& awaiting, std::chrono::steady_clock::time_point now);
  std::string to_bytes() const;
  /// Nothing if the bytes are not a status.
  static std::optional<ProcessStatus> from_bytes(std::string_view bytes);
};

/// A value: a wait that will never end.
struct StuckWait {
  /// Who waits, and for whom.
  int rank = 0, awaited = 0;
  ProcessStatus::Wait wait;
};

/// The waits that cannot end, because a process has ended that they need, or because processes wait
/// for each other; one of each process at most. A process without a status counts as running, and a
/// wait that is younger than `age` as one that will end.
std::vector<StuckWait> stuck_waits(std::span<const std::optional<ProcessStatus>> processes,
                                   std::chrono::milliseconds age);

}  // namespace meshard::internal
