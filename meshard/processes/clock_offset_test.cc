#include "meshard/processes/clock_offset.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

using std::chrono::nanoseconds;

TEST(ClockOffset, TheTrueOffsetIsWithinThePrecision) {
  // Process 0 is 1000 ns ahead. The way there takes 30 ns and the way back 10 ns, or the other way
  // round; the middle is 10 ns off.
  for (std::int64_t there : {30, 10}) {
    internal::ClockReading reading{.asked = 500, .answered = 500 + there + 1000, .received = 540};
    ClockOffset found = reading.offset();
    EXPECT_EQ(found.offset, nanoseconds(there == 30 ? 1010 : 990));
    EXPECT_EQ(found.precision, nanoseconds(20));
  }
  internal::ClockReading odd{.asked = 0, .answered = 1005, .received = 5};  // all of it on the way
  EXPECT_LE(odd.offset().offset - nanoseconds(1000), odd.offset().precision);
  internal::ClockReading behind{.asked = 5000, .answered = 12, .received = 5020};
  EXPECT_EQ(behind.offset().offset, nanoseconds(12 - 5010));
}

TEST(ClockOffset, OneProcessIsItsOwnClock) {
  EXPECT_EQ(clock_offset(processes()).value(), ClockOffset{});
}

TEST(ClockOffset, Prints) {
  EXPECT_EQ((ClockOffset{nanoseconds(-1'250'000), nanoseconds(40'600)}.to_string()),
            "-1250 us +- 40 us");
  EXPECT_EQ((ClockOffset{nanoseconds(12'345'000'000), nanoseconds(0)}.to_string()), "12 s +- 0 us");
}

}  // namespace
}  // namespace meshard
