#include "meshard/explain/byte_text.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(ByteText, PowersOf1024) {
  EXPECT_EQ(byte_text(0), "0 B");
  EXPECT_EQ(byte_text(1023), "1023 B");
  EXPECT_EQ(byte_text(1024), "1 KiB");
  EXPECT_EQ(byte_text(1536), "1.5 KiB");
  EXPECT_EQ(byte_text(64 * 1024), "64 KiB");
  EXPECT_EQ(byte_text(std::int64_t{3} << 30), "3 GiB");
}

TEST(ByteText, RoundsToOneDigitAndNeverTo1024) {
  EXPECT_EQ(byte_text(1100), "1.1 KiB");           // 1.074
  EXPECT_EQ(byte_text(1075), "1 KiB");             // 1.0498
  EXPECT_EQ(byte_text(1024 * 1024 - 1), "1 MiB");  // 1023.999 KiB
  EXPECT_EQ(byte_text(1024 * 1023), "1023 KiB");
  EXPECT_EQ(byte_text(INT64_MAX), "8 EiB");
  EXPECT_EQ(byte_text(-2048), "-2 KiB");
}

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
