// One round trip of clock_offset(). Tested in meshard/processes/clock_offset_test.cc.
#pragma once
#include <cstdint>

#include "meshard/processes/clock_offset.h"

namespace meshard::internal {

/// A value: times in nanoseconds. `asked` and `received` are by the clock of the process that asks,
/// `answered` by that of process 0.
struct ClockReading {
  std::int64_t asked = 0, answered = 0, received = 0;

  std::int64_t round_trip() const { return received - asked; }
  /// The answer is somewhere between `asked` and `received`.
  ClockOffset offset() const;
};

}  // namespace meshard::internal
