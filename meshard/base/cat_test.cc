#include "meshard/base/cat.h"

#include <gtest/gtest.h>

#include <vector>

#include "meshard/base/source_location.h"

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

SourceLocation here(SourceLocation where = SourceLocation::current()) { return where; }
TEST(SourceLocation, IsTheCallers) {
  SourceLocation where = here();
  EXPECT_EQ(where.line, static_cast<unsigned>(__LINE__ - 1));
  EXPECT_EQ(where.to_string(), "cat_test.cc:" + std::to_string(where.line));
  EXPECT_EQ(SourceLocation{}.to_string(), "");
}

}  // namespace
}  // namespace meshard
