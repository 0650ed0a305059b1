#include "meshard/base/saturating.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(Saturating, IsExactBelowTheBoundAndStopsThere) {
  EXPECT_EQ(saturating_add(2, 3), 5);
  EXPECT_EQ(saturating_add(kMostCounted, kMostCounted), kMostCounted);
  EXPECT_EQ(saturating_multiply(6, 7), 42);
  EXPECT_EQ(saturating_multiply(std::int64_t{1} << 26, std::int64_t{1} << 26), kMostCounted);
  EXPECT_EQ(saturating_multiply(INT64_MAX, INT64_MAX), kMostCounted);
  EXPECT_EQ(saturating_multiply(-3, 5), 0);
  EXPECT_EQ(saturating_multiply(0, INT64_MAX), 0);
}

}  // namespace
}  // namespace meshard
