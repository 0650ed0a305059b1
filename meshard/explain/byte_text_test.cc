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

}  // namespace
}  // namespace meshard
