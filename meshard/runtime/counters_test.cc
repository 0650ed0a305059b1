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
  RuntimeCounters all{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(all - all, RuntimeCounters());
  EXPECT_EQ(all - RuntimeCounters(), all);
}

}  // namespace
}  // namespace meshard
