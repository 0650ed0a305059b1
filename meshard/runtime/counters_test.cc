#include "meshard/runtime/counters.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(Counters, DifferencesTellWhatAStepDid) {
  RuntimeCounters before = runtime_counters();
  internal::count(internal::counters().bytes_sent, 100);
  internal::count(internal::counters().launches);
  RuntimeCounters step = runtime_counters() - before;
  RuntimeCounters expected;
  expected.bytes_sent = 100;
  expected.launches = 1;
  EXPECT_EQ(step, expected);
}

TEST(Counters, EachFieldIsSubtracted) {
  RuntimeCounters all{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  EXPECT_EQ(all - all, RuntimeCounters());
  EXPECT_EQ(all - RuntimeCounters(), all);
}

TEST(Counters, ResetCountsFromZero) {
  internal::count(internal::counters().launches, 3);
  reset_runtime_counters();
  EXPECT_EQ(runtime_counters(), RuntimeCounters());
  internal::count(internal::counters().launches);
  EXPECT_EQ(runtime_counters().launches, 1u);
}

TEST(Counters, PrintWhatHappened) {
  EXPECT_EQ(RuntimeCounters().to_string(), "nothing happened\n");
  RuntimeCounters some;
  some.buffers_sent = 8;
  some.bytes_sent = 128;
  some.compiles = 1;
  some.part_loads = 1;
  some.launches = 2;
  some.nodes_run = 5;
  EXPECT_EQ(some.to_string(),
            "sent      8 buffers, 128 bytes (0 used in place)\n"
            "compiled  1 program\n"
            "loaded    1 program for each device\n"
            "launched  2 programs, 5 nodes\n");
}

}  // namespace
}  // namespace meshard
