#include "meshard/base/cat.h"

#include <gtest/gtest.h>

#include <vector>

namespace meshard {
namespace {

TEST(Cat, PrintsEveryKind) {
  EXPECT_EQ(cat("a", 'b', 3, -4L, true, 0.5, 1e300, std::string("s")), "ab3-4true0.51e+300s");
}
TEST(Cat, FloatsReadBackToTheSameValue) {
  EXPECT_EQ(cat(0.1f), "0.1");
  EXPECT_EQ(std::stod(cat(0.1 + 0.2)), 0.1 + 0.2);
}
TEST(Join, SeparatesElements) {
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
  EXPECT_EQ(join(std::vector<int>{}, ", "), "");
}

}  // namespace
}  // namespace meshard
