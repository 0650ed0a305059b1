#include "meshard/base/box.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(DimensionSlice, PrintsAndParses) {
  EXPECT_EQ((DimensionSlice{2, 4}).to_string(), "2:4");
  EXPECT_EQ(DimensionSlice::parse("2:4").value(), (DimensionSlice{2, 4}));
  for (const char* bad : {"", "2", "2:", ":4", "4:2", "2:4:1"})
    EXPECT_FALSE(DimensionSlice::parse(bad).ok()) << bad;
}

}  // namespace
}  // namespace meshard
