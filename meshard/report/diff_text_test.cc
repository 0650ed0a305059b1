#include "meshard/report/diff_text.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(DiffText, Seconds) {
  EXPECT_EQ(seconds_text(2), "2 s");
  EXPECT_EQ(seconds_text(0.0015), "1.5 ms");
  EXPECT_EQ(seconds_text(123.4e-6), "123 us");
  EXPECT_EQ(seconds_text(12.34e-6), "12.3 us");
  EXPECT_EQ(seconds_text(5e-10), "0.5 ns");
  EXPECT_EQ(seconds_text(0), "0 ns");
}

TEST(DiffText, Changes) {
  EXPECT_EQ(bytes_change_text(1024, 1024), "1 KiB");
  EXPECT_EQ(bytes_change_text(1024, 3072), "1 KiB → 3 KiB (+2 KiB)");
  EXPECT_EQ(bytes_change_text(3072, 1024), "3 KiB → 1 KiB (-2 KiB)");
  EXPECT_EQ(seconds_change_text(0.002, 0.0015), "2 ms → 1.5 ms (-25%)");
  EXPECT_EQ(seconds_change_text(0.001, 0.0015), "1 ms → 1.5 ms (+50%)");
  EXPECT_EQ(seconds_change_text(0, 0.001), "0 ns → 1 ms");
}

TEST(DiffText, GrowthInPercent) {
  EXPECT_EQ(bytes_growth_text(2048, 3072), "2 KiB → 3 KiB (+1 KiB, +50%)");
  EXPECT_EQ(bytes_growth_text(3072, 2048), "3 KiB → 2 KiB (-1 KiB, -33.3%)");
  EXPECT_EQ(bytes_growth_text(0, 2048), "0 B → 2 KiB (+2 KiB)");
  EXPECT_EQ(bytes_growth_text(2048, 2048), "2 KiB");
  EXPECT_EQ(bytes_growth_text(1 << 30, (1 << 30) + 1024), "1 GiB → 1 GiB (+1 KiB)");
  EXPECT_EQ(relative_growth_text(1000, 1001), "+0.1%");
  EXPECT_EQ(relative_growth_text(10000, 10001), "");
  EXPECT_EQ(growth_percent(0.125), "12.5%");
  EXPECT_EQ(growth_percent(-0.5), "-50%");
}

}  // namespace
}  // namespace meshard
