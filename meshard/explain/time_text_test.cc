#include "meshard/explain/time_text.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(TimeText, ThreeDigitsInTheLargestUnit) {
  EXPECT_EQ(time_text(0), "0 s");
  EXPECT_EQ(time_text(1), "1 s");
  EXPECT_EQ(time_text(61.26), "61.3 s");
  EXPECT_EQ(time_text(86400), "86400 s");
  EXPECT_EQ(time_text(0.0123), "12.3 ms");
  EXPECT_EQ(time_text(0.00123456), "1.23 ms");
  EXPECT_EQ(time_text(2e-6), "2 us");
  EXPECT_EQ(time_text(1.5e-7), "150 ns");
  EXPECT_EQ(time_text(4e-12), "0 ns");
  EXPECT_EQ(time_text(-0.5), "-500 ms");
}

TEST(TimeText, RoundingCarriesIntoTheNextUnit) {
  EXPECT_EQ(time_text(0.9999), "1 s");
  EXPECT_EQ(time_text(0.00099996), "1 ms");
  EXPECT_EQ(time_text(9.996), "10 s");
  EXPECT_EQ(time_text(99.96e-3), "100 ms");
}

TEST(TimeText, NoNumbers) {
  EXPECT_EQ(time_text(1.0 / 0.0), "unlimited");
  EXPECT_EQ(time_text(0.0 / 0.0), "unknown");
}

}  // namespace
}  // namespace meshard
