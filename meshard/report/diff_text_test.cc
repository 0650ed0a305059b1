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

}  // namespace
}  // namespace meshard
