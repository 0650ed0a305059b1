// How far the clocks of the processes of a run are apart.
#pragma once
#include <chrono>
#include <cstdint>

#include "meshard/base/result.h"
#include "meshard/processes/processes.h"

namespace meshard {

/// A value: the std::chrono::steady_clock of this process, compared with that of process 0.
struct ClockOffset {
  /// What to add to a time of this process to get that of process 0.
  std::chrono::nanoseconds offset{0};
  /// The largest possible error of `offset`: half of the shortest round trip. 0 if both processes
  /// read the same clock.
  std::chrono::nanoseconds precision{0};

  /// `1.2 ms +- 40 us`
  std::string to_string() const;
  friend bool operator==(const ClockOffset&, const ClockOffset&) = default;
};

/// Whether clock_offset() measures between processes that read the same clock.
enum class SameClock {
  kTrusted,   ///< offset and precision are 0
  kMeasured,  ///< as between machines; a check of the measurement
};

/// Compares the clocks by round trips through the store: process 0 answers with its time, which is
/// taken for that of the middle of the round trip (F. Cristian, Probabilistic clock
/// synchronization, 1989). Processes on one machine that has not been restarted, in the same time
/// namespace, read the same clock.
///
/// All processes call this, in the same order and with the same arguments. Process 0 answers one
/// process after the other.
/// @error those of the store
Result<ClockOffset> clock_offset(const Processes& run, SameClock same = SameClock::kTrusted);

}  // namespace meshard

namespace meshard::internal {

// One round trip of clock_offset(). Tested in meshard/processes/clock_offset_test.cc.

/// A value: times in nanoseconds. `asked` and `received` are by the clock of the process that asks,
/// `answered` by that of process 0.
struct ClockReading {
  std::int64_t asked = 0, answered = 0, received = 0;

  std::int64_t round_trip() const { return received - asked; }
  /// The answer is somewhere between `asked` and `received`.
  ClockOffset offset() const;
};

}  // namespace meshard::internal
